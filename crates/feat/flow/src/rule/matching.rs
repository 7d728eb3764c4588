//! The left side of a rule: its match.

use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_wire::MacAddr;
use thalweg_wire::ip::protocol;

use thalweg_conntrack::State;
use thalweg_device::SwIfIndex;

use super::key::{self, Place, WORDS, Words, ether, fragment};
use super::text::{Names, RuleError};

/// A match: values of fields under a mask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Values of the significant bits, but of the port's number.
    pub value: Words,
    /// The significant bits.
    pub mask: Words,
    /// Name of the port. Its number may change and become that of another port: it is put into the
    /// value only [for packets](Self::set_port).
    pub(crate) in_port: Option<String>,
}

/// A field: names, position, syntax and prerequisites.
struct Field {
    names: &'static [&'static str],
    place: Place,
    form: Form,
    needs: Needs,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Number,
    Mac,
    Address,
    TcpFlags,
    /// Without a mask, the last two bits belong to another field.
    Tos,
    /// Takes no mask.
    Protocol,
    Fragment,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// IPv4 or IPv6.
    Ip,
    Ipv6,
    /// IPv4 or ARP.
    Addresses,
    Arp,
    Ports,
    Tcp,
    Icmp,
    /// A solicitation or advertisement of a neighbour.
    Discovery,
    Solicitation,
    Advertisement,
    /// A state of packets with a connection, and an EtherType.
    Original(Option<u16>),
    /// The protocol of such a connection.
    OriginalPorts,
}

const fn field(names: &'static [&'static str], place: Place, form: Form, needs: Needs) -> Field {
    Field { names, place, form, needs }
}

const FIELDS: &[Field] = &[
    field(&["dl_src", "eth_src"], key::DL_SRC, Form::Mac, Needs::Nothing),
    field(&["dl_dst", "eth_dst"], key::DL_DST, Form::Mac, Needs::Nothing),
    field(&["dl_type", "eth_type"], key::DL_TYPE, Form::Number, Needs::Nothing),
    field(&["vlan_tci"], key::VLAN, Form::Number, Needs::Nothing),
    field(&["nw_src", "ip_src"], key::NW_SRC, Form::Address, Needs::Addresses),
    field(&["nw_dst", "ip_dst"], key::NW_DST, Form::Address, Needs::Addresses),
    field(&["arp_spa"], key::NW_SRC, Form::Address, Needs::Arp),
    field(&["arp_tpa"], key::NW_DST, Form::Address, Needs::Arp),
    field(&["arp_op"], key::NW_PROTO, Form::Number, Needs::Arp),
    field(&["nw_proto", "ip_proto"], key::NW_PROTO, Form::Number, Needs::Ip),
    field(&["nw_tos"], key::NW_TOS, Form::Tos, Needs::Ip),
    field(&["ip_dscp"], key::NW_DSCP, Form::Number, Needs::Ip),
    field(&["nw_ecn", "ip_ecn"], key::NW_ECN, Form::Number, Needs::Ip),
    field(&["nw_frag", "ip_frag"], key::NW_FRAG, Form::Fragment, Needs::Ip),
    field(&["ipv6_label"], key::IPV6_LABEL, Form::Number, Needs::Ipv6),
    field(&["nw_ttl"], key::NW_TTL, Form::Number, Needs::Ip),
    field(&["tp_src", "tcp_src", "udp_src", "sctp_src"], key::TP_SRC, Form::Number, Needs::Ports),
    field(&["tp_dst", "tcp_dst", "udp_dst", "sctp_dst"], key::TP_DST, Form::Number, Needs::Ports),
    field(&["icmp_type", "icmpv6_type"], key::TP_SRC, Form::Number, Needs::Icmp),
    field(&["icmp_code", "icmpv6_code"], key::TP_DST, Form::Number, Needs::Icmp),
    field(&["nd_sll"], key::ND_SLL, Form::Mac, Needs::Solicitation),
    field(&["nd_tll"], key::ND_TLL, Form::Mac, Needs::Advertisement),
    field(&["tcp_flags"], key::TCP_FLAGS, Form::TcpFlags, Needs::Tcp),
    field(&["ct_zone"], key::CT_ZONE, Form::Number, Needs::Nothing),
    field(&["ct_mark"], key::CT_MARK, Form::Number, Needs::Nothing),
    field(&["ct_nw_src"], key::CT_NW_SRC, Form::Address, Needs::Original(Some(ether::IPV4))),
    field(&["ct_nw_dst"], key::CT_NW_DST, Form::Address, Needs::Original(Some(ether::IPV4))),
    field(&["ct_nw_proto"], key::CT_NW_PROTO, Form::Protocol, Needs::Original(None)),
    field(&["ct_tp_src"], key::CT_TP_SRC, Form::Number, Needs::OriginalPorts),
    field(&["ct_tp_dst"], key::CT_TP_DST, Form::Number, Needs::OriginalPorts),
];

/// Addresses of IPv6, the upper half first.
const LONG: &[(&str, [Place; 2], Needs)] = &[
    ("ipv6_src", key::IPV6_SRC, Needs::Ipv6),
    ("ipv6_dst", key::IPV6_DST, Needs::Ipv6),
    ("nd_target", key::ND_TARGET, Needs::Discovery),
    ("ct_ipv6_src", key::CT_IPV6_SRC, Needs::Original(Some(ether::IPV6))),
    ("ct_ipv6_dst", key::CT_IPV6_DST, Needs::Original(Some(ether::IPV6))),
];

/// Shorthands for protocols: EtherType and transport number.
const PROTOCOLS: &[(&str, u16, Option<u8>)] = &[
    ("ip", ether::IPV4, None),
    ("ip4", ether::IPV4, None),
    ("ipv4", ether::IPV4, None),
    ("icmp", ether::IPV4, Some(1)),
    ("tcp", ether::IPV4, Some(6)),
    ("udp", ether::IPV4, Some(17)),
    ("sctp", ether::IPV4, Some(132)),
    ("ipv6", ether::IPV6, None),
    ("ip6", ether::IPV6, None),
    ("tcp6", ether::IPV6, Some(6)),
    ("udp6", ether::IPV6, Some(17)),
    ("sctp6", ether::IPV6, Some(132)),
    ("icmp6", ether::IPV6, Some(58)),
    ("arp", ether::ARP, None),
    ("rarp", ether::RARP, None),
];

/// Values of `nw_frag`, as in Open vSwitch: value and mask.
const FRAGMENTS: [(&str, u64, u64); 5] = [
    ("no", 0, fragment::ANY | fragment::LATER),
    ("yes", fragment::ANY, fragment::ANY),
    ("first", fragment::ANY, fragment::ANY | fragment::LATER),
    ("later", fragment::ANY | fragment::LATER, fragment::ANY | fragment::LATER),
    ("not_later", 0, fragment::LATER),
];

const TCP_FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

/// Parses a number, decimal or hexadecimal.
pub(crate) fn number(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Parses NUMBER or NUMBER/MASK.
pub(crate) fn masked(text: &str, all: u128) -> Option<(u128, u128)> {
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => (number(value)?, number(mask)?),
        None => (number(text)?, all),
    };
    (value <= all && mask <= all).then_some((value & mask, mask))
}

fn mac(text: &str) -> Option<u64> {
    text.parse().ok().map(MacAddr::to_u64)
}

fn masked_mac(text: &str) -> Option<(u64, u64)> {
    match text.split_once('/') {
        Some((value, mask)) => mac(value).zip(mac(mask)).map(|(v, m)| (v & m, m)),
        None => mac(text).map(|v| (v, (1 << 48) - 1)),
    }
}

fn address(text: &str) -> Option<(u128, u128)> {
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => match mask.parse::<u32>() {
            Ok(bits) => (value, u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0)),
            Err(_) => (value, mask.parse::<Ipv4Addr>().ok()?.to_bits()),
        },
        None => (text, u32::MAX),
    };
    let value = value.parse::<Ipv4Addr>().ok()?.to_bits();
    Some((u128::from(value & mask), u128::from(mask)))
}

/// Parses an address of IPv6, a prefix, or an address and a mask.
pub(super) fn long_address(text: &str) -> Option<(u128, u128)> {
    let bits = |text: &str| text.parse().ok().map(Ipv6Addr::to_bits);
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => match mask.parse::<u32>() {
            Ok(length) if length <= 128 => {
                (value, u128::MAX.checked_shl(128 - length).unwrap_or(0))
            }
            Ok(_) => return None,
            Err(_) => (value, bits(mask)?),
        },
        None => (text, u128::MAX),
    };
    Some((bits(value)? & mask, mask))
}

/// Parses flags such as `+trk-new` into a value and a mask.
fn flags(text: &str, named: impl Fn(&str) -> Option<u8>) -> Option<(u128, u128)> {
    if !text.starts_with(['+', '-']) {
        return masked(text, 0xff);
    }
    let (mut value, mut mask, mut rest) = (0, 0, text);
    while let Some(sign) = rest.chars().next() {
        let name = &rest[1..];
        let end = name.find(['+', '-']).unwrap_or(name.len());
        let bit = named(&name[..end])?;
        value |= if sign == '+' { bit } else { 0 };
        mask |= bit;
        rest = &name[end..];
    }
    Some((value.into(), mask.into()))
}

impl Match {
    /// Puts the present number of its port into the value, to compare packets with it.
    pub(crate) fn set_port(&mut self, number: SwIfIndex) {
        key::IN_PORT.set(&mut self.value, number.0.into());
    }

    /// Returns whether a packet matches.
    #[cfg(test)]
    pub(crate) fn takes(&self, words: &Words) -> bool {
        (0..WORDS).all(|i| words[i] & self.mask[i] == self.value[i])
    }

    /// Returns whether `wider` matches all packets that this one does, whatever their ports.
    pub(crate) fn is_within(&self, wider: &Match) -> bool {
        (0..WORDS).all(|i| {
            self.mask[i] & wider.mask[i] == wider.mask[i]
                && self.value[i] & wider.mask[i] == wider.value[i]
        })
    }

    fn require(&mut self, place: Place, value: u64, mask: u64) {
        let (mut v, mut m) = (place.get(&self.value), place.get(&self.mask));
        v = v & !mask | value & mask;
        m |= mask;
        place.set(&mut self.value, v);
        place.set(&mut self.mask, m);
    }

    pub(crate) fn exact(&self, place: Place) -> Option<u64> {
        (place.get(&self.mask) == place.ones()).then(|| place.get(&self.value))
    }

    /// Returns whether it requires a tag.
    pub(crate) fn is_tagged(&self) -> bool {
        key::VLAN.get(&self.value) & 0x1000 != 0
    }

    /// Returns whether it requires IP.
    pub(crate) fn is_ip(&self) -> bool {
        matches!(self.exact(key::DL_TYPE), Some(0x0800 | 0x86dd))
    }

    /// Returns whether it looks at fields beyond the [narrow](key::NARROW) words, or at what is
    /// read together with them.
    pub(crate) fn is_wide(&self) -> bool {
        let asks_option = self.exact(key::NW_PROTO) == Some(protocol::ICMPV6.into())
            && key::ND_OPTION.get(&self.mask) != 0;
        key::is_wide(&self.mask) || asks_option
    }

    /// Returns whether it requires the tracking state `inv`.
    pub(crate) fn wants_invalid(&self) -> bool {
        let bit = u64::from(State::INVALID.bits());
        key::CT_STATE.get(&self.value) & bit != 0
    }

    /// Returns whether it requires a tracking state of packets with a connection, or one that may
    /// become one.
    fn wants_connection(&self) -> bool {
        let (value, mask) = (key::CT_STATE.get(&self.value), key::CT_STATE.get(&self.mask));
        let [tracked, invalid] = [State::TRACKED, State::INVALID].map(|s| u64::from(s.bits()));
        let is_valid = value & tracked != 0 && mask & invalid != 0 && value & invalid == 0;
        is_valid || value & !(tracked | invalid) != 0
    }

    /// Returns whether it looks at the original direction of connections.
    pub(crate) fn asks_original(&self) -> bool {
        self.wants_connection() && key::may_ask_original(&self.mask)
    }

    /// Parses one field. Returns false if the name is unknown.
    pub(crate) fn read(&mut self, word: &str, names: &dyn Names) -> Result<bool, RuleError> {
        let Some((name, value)) = word.split_once('=') else {
            let Some((_, kind, number)) = PROTOCOLS.iter().find(|p| p.0 == word) else {
                return Ok(false);
            };
            self.require(key::DL_TYPE, u64::from(*kind), 0xffff);
            if let Some(number) = number {
                self.require(key::NW_PROTO, u64::from(*number), 0xff);
            }
            return Ok(true);
        };
        let wrong = |what: &str| RuleError::new(word, format!("{what} expected"));
        match name {
            "in_port" => {
                names.number(value).ok_or_else(|| wrong("the name of an interface"))?;
                self.in_port = Some(value.to_owned());
                self.require(key::IN_PORT, 0, key::IN_PORT.ones());
            }
            "vlan_vid" => {
                // Bit 12 stands for the tag; 0 means no tag.
                let (value, mask) = masked(value, 0x1fff)
                    .filter(|(value, mask)| {
                        value & 0x1000 != 0 || *mask == 0x1fff && *value == 0 || mask & 0x1000 == 0
                    })
                    .ok_or_else(|| {
                        wrong("4096 + the VLAN, 0 for no tag, or NUMBER/MASK (or dl_vlan=VLAN)")
                    })?;
                self.require(key::VLAN, value as u64, mask as u64);
            }
            "dl_vlan" => {
                let vid = number(value).filter(|v| *v < 4096 || *v == 0xffff);
                let vid = vid.ok_or_else(|| wrong("a number up to 4095, or 0xffff for none"))?;
                let (value, mask) =
                    if vid == 0xffff { (0, 0xffff) } else { (vid | 0x1000, 0x1fff) };
                self.require(key::VLAN, value as u64, mask);
            }
            "dl_vlan_pcp" | "vlan_pcp" => {
                let pcp = number(value).filter(|v| *v < 8).ok_or_else(|| wrong("0 to 7"))?;
                self.require(key::VLAN, (pcp as u64) << 13 | 0x1000, 0xf000);
            }
            "ct_state" => {
                let named = |name: &str| State::named(name).map(State::bits);
                let (value, mask) = flags(value, named).ok_or_else(|| {
                    wrong("flags such as +trk-new, of new est rel rpl inv trk snat dnat,")
                })?;
                self.require(key::CT_STATE, value as u64, mask as u64);
            }
            "ct_label" => {
                let (value, mask) =
                    masked(value, u128::MAX).ok_or_else(|| wrong("VALUE or VALUE/MASK"))?;
                self.require(key::CT_LABEL_LOW, value as u64, mask as u64);
                self.require(key::CT_LABEL_HIGH, (value >> 64) as u64, (mask >> 64) as u64);
            }
            "nd_reserved" => {
                let value = number(value).filter(|v| *v <= u32::MAX.into());
                let value = value.ok_or_else(|| wrong("a number up to 0xffffffff"))? as u64;
                self.check_needs(Needs::Discovery, word)?;
                let [high, low] = key::ND_RESERVED;
                self.require(high, value >> 16, high.ones());
                self.require(low, value, low.ones());
            }
            "nd_options_type" => {
                let value = number(value).and_then(|v| u8::try_from(v).ok());
                let value = value.ok_or_else(|| wrong("a number up to 255"))?;
                self.check_needs(Needs::Discovery, word)?;
                self.require(key::ND_OPTION, value.into(), 0xff);
            }
            "arp_sha" => self.read_mac(&key::ARP_SHA, value, word)?,
            "arp_tha" => self.read_mac(&key::ARP_THA, value, word)?,
            _ => match LONG.iter().find(|(known, ..)| *known == name) {
                Some((_, places, needs)) => self.read_long(*places, value, word, *needs)?,
                None => return self.read_field(name, value, word),
            },
        }
        Ok(true)
    }

    /// Parses an address of IPv6.
    fn read_long(
        &mut self,
        [high, low]: [Place; 2],
        text: &str,
        word: &str,
        needs: Needs,
    ) -> Result<(), RuleError> {
        let (value, mask) = long_address(text).ok_or_else(|| {
            RuleError::new(word, "an IPv6 address, a prefix, or ADDRESS/MASK, expected")
        })?;
        self.check_needs(needs, word)?;
        self.require(high, (value >> 64) as u64, (mask >> 64) as u64);
        self.require(low, value as u64, mask as u64);
        Ok(())
    }

    /// Parses an Ethernet address within ARP.
    fn read_mac(&mut self, places: &[Place], text: &str, word: &str) -> Result<(), RuleError> {
        let (mut value, mut mask) = masked_mac(text).ok_or_else(|| {
            RuleError::new(word, "an Ethernet address, or ADDRESS/MASK, expected")
        })?;
        self.check_needs(Needs::Arp, word)?;
        for place in places.iter().rev() {
            self.require(*place, value, mask & place.ones());
            (value, mask) = (value >> place.bits(), mask >> place.bits());
        }
        Ok(())
    }

    fn read_field(&mut self, name: &str, value: &str, word: &str) -> Result<bool, RuleError> {
        let Some(field) = FIELDS.iter().find(|f| f.names.contains(&name)) else { return Ok(false) };
        let all = u128::from(field.place.ones());
        let read = match field.form {
            Form::Number => masked(value, all),
            Form::Address => address(value),
            Form::Mac => masked_mac(value).map(|(v, m)| (v.into(), m.into())),
            Form::Tos if value.contains('/') => masked(value, all),
            Form::Protocol => number(value).filter(|v| *v <= all).map(|v| (v, all)),
            Form::Tos => number(value).filter(|v| *v <= 0xfc && v & 3 == 0).map(|v| (v, 0xfc)),
            Form::Fragment => FRAGMENTS
                .iter()
                .find(|(name, ..)| *name == value)
                .map(|(_, value, mask)| ((*value).into(), (*mask).into())),
            Form::TcpFlags => {
                flags(value, |name| TCP_FLAGS.iter().position(|f| *f == name).map(|bit| 1 << bit))
            }
        };
        let (value, mask) = read.ok_or_else(|| {
            let what = match field.form {
                Form::Number => format!("a number up to {all:#x}, or NUMBER/MASK,"),
                Form::Protocol => format!("a number up to {all}"),
                Form::Address => "an IPv4 address or prefix".into(),
                Form::Mac => "an Ethernet address, or ADDRESS/MASK,".into(),
                Form::TcpFlags => "flags such as +syn-ack".into(),
                Form::Tos => "a multiple of 4 up to 252, or NUMBER/MASK,".into(),
                Form::Fragment => "no, yes, first, later or not_later".into(),
            };
            RuleError::new(word, format!("{what} expected"))
        })?;
        self.check_needs(field.needs, word)?;
        self.require(field.place, value as u64, mask as u64);
        Ok(true)
    }

    fn check_needs(&self, needs: Needs, word: &str) -> Result<(), RuleError> {
        let kind = self.exact(key::DL_TYPE).map(|kind| kind as u16);
        let transport = self.exact(key::NW_PROTO).filter(|_| self.is_ip());
        let message = |number: u64| {
            let is_icmp6 = kind == Some(ether::IPV6) && transport == Some(58);
            is_icmp6 && self.exact(key::TP_SRC) == Some(number)
        };
        let (met, what) = match needs {
            Needs::Nothing => (true, ""),
            Needs::Ip => (self.is_ip(), "ip or ipv6"),
            Needs::Ipv6 => (kind == Some(ether::IPV6), "ipv6"),
            Needs::Addresses => {
                (matches!(kind, Some(ether::IPV4 | ether::ARP | ether::RARP)), "ip or arp")
            }
            Needs::Arp => (matches!(kind, Some(ether::ARP | ether::RARP)), "arp"),
            Needs::Ports => (matches!(transport, Some(6 | 17 | 132)), "tcp, udp or sctp"),
            Needs::Tcp => (transport == Some(6), "tcp"),
            Needs::Icmp => (matches!(transport, Some(1 | 58)), "icmp or icmp6"),
            Needs::Discovery => {
                (message(135) || message(136), "icmp6,icmp_type=135 or icmp6,icmp_type=136")
            }
            Needs::Solicitation => (message(135), "icmp6,icmp_type=135"),
            Needs::Advertisement => (message(136), "icmp6,icmp_type=136"),
            Needs::Original(Some(wanted)) if kind != Some(wanted) => {
                (false, if wanted == ether::IPV6 { "ipv6" } else { "ip" })
            }
            Needs::Original(_) => (
                self.wants_connection(),
                "ct_state=+trk-inv, or with one of +new, +est, +rel, +rpl, +snat, +dnat,",
            ),
            Needs::OriginalPorts => {
                (self.exact(key::CT_NW_PROTO).is_some() && self.wants_connection(), "ct_nw_proto")
            }
        };
        if met { Ok(()) } else { Err(RuleError::new(word, format!("write {what} before it"))) }
    }
}
