//! Fields that actions set, as a whole or in part.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_wire::MacAddr;

use super::action::Action;
use super::key::{self, Place, Words};
use super::matching::{long_address, number};
use super::text::RuleError;
use super::unsupported;
use crate::tags::Tag;

/// A field that actions can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Ethernet source.
    EtherSource,
    /// Ethernet destination.
    EtherDestination,
    /// VLAN of the outermost tag.
    VlanId,
    /// Priority of the outermost tag.
    VlanPriority,
    /// IPv4 source.
    Source,
    /// IPv4 destination.
    Destination,
    /// The upper six bits of the type of service.
    Dscp,
    /// The ECN bits.
    Ecn,
    /// TTL.
    Ttl,
    /// Source port.
    SourcePort,
    /// Destination port.
    DestinationPort,
}

/// The names of a field.
struct Names {
    field: Field,
    place: Place,
    /// Names in `set_field`.
    words: &'static [&'static str],
    /// Names in `load`, with the bit at which the field begins.
    load: &'static [(&'static str, u32)],
}

const fn names(
    field: Field,
    place: Place,
    words: &'static [&'static str],
    load: &'static [(&'static str, u32)],
) -> Names {
    Names { field, place, words, load }
}

const FIELDS: &[Names] = &[
    names(
        Field::EtherSource,
        key::DL_SRC,
        &["eth_src", "dl_src"],
        &[("nxm_of_eth_src", 0), ("oxm_of_eth_src", 0)],
    ),
    names(
        Field::EtherDestination,
        key::DL_DST,
        &["eth_dst", "dl_dst"],
        &[("nxm_of_eth_dst", 0), ("oxm_of_eth_dst", 0)],
    ),
    names(Field::VlanId, key::VLAN_ID, &["vlan_vid"], &[("nxm_of_vlan_tci", 0)]),
    names(
        Field::VlanPriority,
        key::VLAN_PRIORITY,
        &["vlan_pcp"],
        &[("nxm_of_vlan_tci", 13), ("oxm_of_vlan_pcp", 0)],
    ),
    names(
        Field::Source,
        key::NW_SRC,
        &["nw_src", "ip_src"],
        &[("nxm_of_ip_src", 0), ("oxm_of_ipv4_src", 0)],
    ),
    names(
        Field::Destination,
        key::NW_DST,
        &["nw_dst", "ip_dst"],
        &[("nxm_of_ip_dst", 0), ("oxm_of_ipv4_dst", 0)],
    ),
    names(Field::Dscp, key::NW_DSCP, &["ip_dscp"], &[("nxm_of_ip_tos", 2), ("oxm_of_ip_dscp", 0)]),
    names(
        Field::Ecn,
        key::NW_ECN,
        &["nw_ecn", "ip_ecn"],
        &[("nxm_nx_ip_ecn", 0), ("oxm_of_ip_ecn", 0)],
    ),
    names(Field::Ttl, key::NW_TTL, &["nw_ttl"], &[("nxm_nx_ip_ttl", 0)]),
    names(
        Field::SourcePort,
        key::TP_SRC,
        &["tcp_src", "tp_src", "udp_src"],
        &[
            ("nxm_of_tcp_src", 0),
            ("nxm_of_udp_src", 0),
            ("oxm_of_tcp_src", 0),
            ("oxm_of_udp_src", 0),
        ],
    ),
    names(
        Field::DestinationPort,
        key::TP_DST,
        &["tcp_dst", "tp_dst", "udp_dst"],
        &[
            ("nxm_of_tcp_dst", 0),
            ("nxm_of_udp_dst", 0),
            ("oxm_of_tcp_dst", 0),
            ("oxm_of_udp_dst", 0),
        ],
    ),
];

/// A change of some bits of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The field.
    pub field: Field,
    /// Value of the bits to set.
    pub value: u64,
    /// Mask of the bits to set.
    pub mask: u64,
    /// Name of the field as written.
    name: String,
    /// First and last bit as written in `load`.
    range: Option<(u32, u32)>,
}

fn parts(field: Field) -> &'static Names {
    let found = FIELDS.iter().find(|names| names.field == field);
    found.unwrap_or(&FIELDS[0])
}

impl Field {
    /// Value in a packet with these fields.
    pub(crate) fn of(self, words: &Words) -> u64 {
        parts(self).place.get(words)
    }

    /// The action that sets the whole field.
    pub(crate) fn whole(self, value: u64) -> Action {
        match self {
            Field::EtherSource => Action::SetSource(MacAddr::from_u64(value)),
            Field::EtherDestination => Action::SetDestination(MacAddr::from_u64(value)),
            Field::VlanId => Action::Tag(Tag::Id(value as u16)),
            Field::VlanPriority => Action::Tag(Tag::Priority(value as u8)),
            Field::Source => Action::SetAddress(true, Ipv4Addr::from_bits(value as u32)),
            Field::Destination => Action::SetAddress(false, Ipv4Addr::from_bits(value as u32)),
            Field::Dscp => Action::SetTos((value as u8) << 2),
            Field::Ecn => Action::SetEcn(value as u8),
            Field::Ttl => Action::SetTtl(value as u8),
            Field::SourcePort => Action::SetPort(true, value as u16),
            Field::DestinationPort => Action::SetPort(false, value as u16),
        }
    }

    /// Returns whether it is a field of the Ethernet header.
    pub(crate) fn is_ethernet(self) -> bool {
        matches!(self, Field::EtherSource | Field::EtherDestination)
    }

    fn ones(self) -> u64 {
        parts(self).place.ones()
    }

    /// Parses a value in the syntax of the field.
    fn read(self, text: &str) -> Option<u64> {
        match self {
            Field::EtherSource | Field::EtherDestination => {
                let mac = thalweg_config::declare::mac(text)?;
                Some(mac.to_u64())
            }
            Field::Source | Field::Destination => {
                text.parse::<Ipv4Addr>().ok().map(|a| a.to_bits().into())
            }
            _ => number(text).and_then(|n| u64::try_from(n).ok()),
        }
    }

    fn expected(self) -> String {
        match self {
            Field::EtherSource | Field::EtherDestination => "an Ethernet address".into(),
            Field::Source | Field::Destination => "an IPv4 address".into(),
            _ => format!("a number up to {}", self.ones()),
        }
    }

    fn write(self, value: u64, is_mask: bool) -> String {
        match self {
            Field::EtherSource | Field::EtherDestination => MacAddr::from_u64(value).to_string(),
            Field::Source | Field::Destination => Ipv4Addr::from_bits(value as u32).to_string(),
            _ if is_mask => format!("{value:#x}"),
            _ => value.to_string(),
        }
    }
}

/// `set_field:VALUE[/MASK]->FIELD`.
pub(super) fn set_field(word: &str, argument: &str) -> Result<Action, RuleError> {
    let wrong = |what: String| RuleError::new(word, what);
    let (text, name) =
        argument.split_once("->").ok_or_else(|| wrong("set_field:VALUE->FIELD expected".into()))?;
    if matches!(name, "ct_mark" | "ct_label") {
        let right = "cannot set CT fields outside of ct action: ct(commit,exec(…))";
        return Err(wrong(right.into()));
    }
    if let "ipv6_src" | "ipv6_dst" = name {
        let right = "an IPv6 address, ADDRESS/LENGTH, or ADDRESS/MASK, expected";
        let (to, mask) = long_address(text).ok_or_else(|| wrong(right.into()))?;
        let [to, mask] = [to, mask].map(Ipv6Addr::from_bits);
        return Ok(Action::SetAddress6(name == "ipv6_src", to, mask));
    }
    // nw_tos excludes the ECN bits.
    let (name, shift) = if name == "nw_tos" { ("ip_dscp", 2) } else { (name, 0) };
    let Some(found) = FIELDS.iter().find(|names| names.words.contains(&name)) else {
        let known = "eth_src, eth_dst, vlan_vid, vlan_pcp, nw_src, nw_dst, ipv6_src, ipv6_dst, nw_tos, ip_dscp, \
                     nw_ecn, nw_ttl, tp_src and tp_dst";
        let why = unsupported::field(name).map_or(String::new(), |why| format!("{why}; "));
        return Err(wrong(format!("{why}set_field takes {known}")));
    };
    let field = found.field;
    let (text, mask) = match text.split_once('/') {
        Some((text, mask)) => (text, Some(mask)),
        None => (text, None),
    };
    if field == Field::VlanId {
        return match (mask, number(text)) {
            (None, Some(n)) if n & !0xfff == 0x1000 => Ok(field.whole(n as u64 & 0xfff)),
            (None, _) => Err(wrong(
                "4096 + the VLAN expected, as bit 12 of vlan_vid stands for the tag; or mod_vlan_vid:VLAN"
                    .into(),
            )),
            _ => Err(wrong("vlan_vid takes no mask".into())),
        };
    }
    let ones = field.ones();
    let read = |text: &str| {
        let value = field.read(text).filter(|v| v & ((1 << shift) - 1) == 0).map(|v| v >> shift);
        value.filter(|value| *value <= ones).ok_or_else(|| match shift {
            0 => wrong(format!("{} expected", field.expected())),
            _ => wrong("a multiple of 4 up to 252 expected".into()),
        })
    };
    let value = read(text)?;
    match mask.map(read).transpose()?.unwrap_or(ones) {
        mask if mask == ones => Ok(field.whole(value)),
        _ if field == Field::VlanPriority => Err(wrong("vlan_pcp takes no mask".into())),
        mask => {
            let name = name.to_owned();
            Ok(Action::SetBits(Bits { field, value: value & mask, mask, name, range: None }))
        }
    }
}

/// `load:VALUE->FIELD[FIRST..LAST]`.
pub(super) fn load(word: &str, argument: &str) -> Result<Action, RuleError> {
    let wrong = |what: &str| RuleError::new(word, what);
    let right = "load:VALUE->FIELD[FIRST..LAST] expected, such as load:1->NXM_OF_IP_SRC[0..7]";
    let (text, place) = argument.split_once("->").ok_or_else(|| wrong(right))?;
    let (name, range) = place.split_once('[').ok_or_else(|| wrong(right))?;
    let range = range.strip_suffix(']').ok_or_else(|| wrong(right))?;
    let lower = name.to_ascii_lowercase();
    if lower.contains("ct_mark") || lower.contains("ct_label") {
        return Err(wrong("cannot set CT fields outside of ct action: ct(commit,exec(…))"));
    }
    let bit = |text: &str| text.trim().parse::<u32>().ok().filter(|bit| *bit < 64);
    let range = match range.split_once("..") {
        _ if range.is_empty() => None,
        Some((first, last)) => Some(bit(first).zip(bit(last)).ok_or_else(|| wrong(right))?),
        None => Some(bit(range).map(|n| (n, n)).ok_or_else(|| wrong(right))?),
    };
    // The field that contains the first bit: a TCI has several.
    let first = range.map_or(0, |(first, _)| first);
    let begins = |names: &'static Names| {
        let of = |(n, at): &(&str, u32)| (*n == lower).then_some(*at);
        let at = names.load.iter().find_map(of);
        let word = names.words.contains(&lower.as_str()).then_some(0);
        let begins = at.or(word).filter(|at| *at <= first);
        begins.map(|at| (at, names))
    };
    let known = FIELDS.iter().any(|names| {
        names.load.iter().any(|(n, _)| *n == lower) || names.words.contains(&lower.as_str())
    });
    if !known {
        let why = "no registers, and only the fields that set_field takes can be loaded";
        return Err(RuleError::new(word, format!("not supported: {why}; {right}")));
    }
    let found = FIELDS.iter().filter_map(begins).max_by_key(|(at, _)| *at);
    let outside = || {
        wrong(
            "bits of a single field expected: of NXM_OF_VLAN_TCI [0..11] or [13..15], of NXM_OF_IP_TOS [2..7]",
        )
    };
    let (at, names) = found.ok_or_else(outside)?;
    let (field, ones) = (names.field, names.place.ones());
    let bits = ones.count_ones();
    let (first, last) = range.unwrap_or((at, at + bits - 1));
    if last < first || last - at >= bits || (range.is_none() && lower == "nxm_of_vlan_tci") {
        return Err(outside());
    }
    let mask = (u64::MAX >> (63 - (last - first))) << (first - at);
    let value = number(text).and_then(|n| u64::try_from(n).ok());
    let value = value.filter(|v| *v <= mask >> (first - at));
    let value = value.ok_or_else(|| wrong("a number that fits into these bits expected"))?;
    let value = value << (first - at);
    match field {
        _ if mask == ones => Ok(field.whole(value)),
        Field::VlanId | Field::VlanPriority => Err(outside()),
        _ => {
            let is_short = names.words.contains(&lower.as_str());
            let name = if is_short { lower } else { lower.to_ascii_uppercase() };
            let range = Some((first, last));
            Ok(Action::SetBits(Bits { field, value, mask, name, range }))
        }
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bits { field, value, mask, name, range } = self;
        match range {
            Some((first, last)) => {
                let value = value >> mask.trailing_zeros();
                write!(f, "load:{value:#x}->{name}")?;
                if first == last { write!(f, "[{first}]") } else { write!(f, "[{first}..{last}]") }
            }
            None => {
                let (value, mask) = (field.write(*value, false), field.write(*mask, true));
                write!(f, "set_field:{value}/{mask}->{name}")
            }
        }
    }
}
