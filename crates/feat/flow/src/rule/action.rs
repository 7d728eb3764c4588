//! The right side of a rule: its actions.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_wire::MacAddr;

use super::key::{self, ether};
use super::matching::{Match, masked, number};
use super::nat::Nat;
use super::set::{self, Bits, Field};
use super::text::{Names, RuleError, split};
use super::unsupported;
use crate::tags::Tag;

/// An action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Forwards it as if there were no rules: to the bridge, the cross connect or the router.
    Normal,
    /// Sends it out of an interface.
    Output(String),
    /// Sends it out of the interface that it was received on.
    InPort,
    /// Drops it.
    Drop,
    /// Looks it up in another table, or this one, as if received on another port.
    Resubmit(Option<String>, Option<u8>),
    /// Tracks its connection.
    Ct(Ct),
    /// Clears the tracking state.
    CtClear,
    /// Sets the Ethernet source.
    SetSource(MacAddr),
    /// Sets the Ethernet destination.
    SetDestination(MacAddr),
    /// Sets the upper six bits of the type of service.
    SetTos(u8),
    /// Sets the ECN bits.
    SetEcn(u8),
    /// Sets the TTL.
    SetTtl(u8),
    /// Decrements the TTL; drops the packet if it expires.
    DecTtl,
    /// Sets some bits of a field.
    SetBits(Bits),
    /// Sets the IPv4 address of the source, or else of the destination.
    SetAddress(bool, Ipv4Addr),
    /// Sets bits of the IPv6 address of the source, or else of the destination: their value, and
    /// which they are.
    SetAddress6(bool, Ipv6Addr, Ipv6Addr),
    /// Sets the port of the source, or else of the destination.
    SetPort(bool, u16),
    /// Pushes, pops or sets a VLAN tag.
    Tag(Tag),
    /// Arbitrary bytes without effect.
    Note(String),
}

/// Arguments of `ct`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ct {
    /// Commits the connection.
    pub commit: bool,
    /// Makes this the original direction, replacing a connection of the opposite one.
    pub force: bool,
    /// The table to continue in with the tracking state.
    pub table: Option<u8>,
    /// The zone.
    pub zone: u16,
    /// Value and mask of the mark.
    pub mark: Option<(u32, u32)>,
    /// Value and mask of the label.
    pub label: Option<(u128, u128)>,
    /// Translates packets.
    pub nat: Option<Nat>,
}

fn table(word: &str, text: &str) -> Result<u8, RuleError> {
    let number = number(text).and_then(|n| u8::try_from(n).ok()).filter(|n| *n < 255);
    number.ok_or_else(|| RuleError::new(word, "a table from 0 to 254 expected"))
}

fn mac(word: &str, text: &str) -> Result<MacAddr, RuleError> {
    thalweg_config::declare::mac(text)
        .ok_or_else(|| RuleError::new(word, "an Ethernet address expected"))
}

fn byte(word: &str, text: &str) -> Result<u8, RuleError> {
    let number = number(text).and_then(|n| u8::try_from(n).ok());
    number.ok_or_else(|| RuleError::new(word, "a number up to 255 expected"))
}

fn address(word: &str, text: &str) -> Result<Ipv4Addr, RuleError> {
    text.parse().map_err(|_| RuleError::new(word, "an IPv4 address expected"))
}

fn port_number(word: &str, text: &str) -> Result<u16, RuleError> {
    let number = number(text).and_then(|n| u16::try_from(n).ok());
    number.ok_or_else(|| RuleError::new(word, "a port up to 65535 expected"))
}

impl Action {
    /// Parses the actions of a rule with this match.
    pub(crate) fn list(
        text: &str,
        matches: &Match,
        names: &dyn Names,
    ) -> Result<Vec<Action>, RuleError> {
        let mut list = Vec::new();
        for word in split(text)? {
            let action = Action::read(word, names)?;
            action.check(word, matches, &list)?;
            list.push(action);
        }
        match list.len() {
            0 => Err(RuleError::new(text, "an action expected, such as normal or drop")),
            n if n > 1 && list.contains(&Action::Drop) => Err(RuleError::new(
                text,
                "drop must be the only action; a packet without an output is dropped",
            )),
            _ => Ok(list),
        }
    }

    /// Checks prerequisites, as Open vSwitch does.
    fn check(&self, word: &str, matches: &Match, before: &[Action]) -> Result<(), RuleError> {
        let kind = matches.exact(key::DL_TYPE);
        let (ipv4, ipv6) = (kind == Some(0x0800), kind == Some(0x86dd));
        let is_ip = ipv4 || ipv6;
        let needs = |what: &str| Err(RuleError::new(word, format!("the rule has to match {what}")));
        match self {
            Action::Ct(ct) => ct.check(word, matches),
            Action::SetAddress(..) if !ipv4 => needs("ip, or a protocol on it"),
            Action::SetAddress6(..) if !ipv6 => needs("ipv6, or a protocol on it"),
            Action::SetBits(Bits { field: Field::Source | Field::Destination, .. }) if !ipv4 => {
                needs("ip, or a protocol on it")
            }
            Action::SetEcn(_) | Action::DecTtl if !is_ip => {
                needs("ip or ipv6, or a protocol on it")
            }
            Action::SetBits(bits) if !bits.field.is_ethernet() && !is_ip => {
                needs("ip or ipv6, or a protocol on it")
            }
            Action::SetPort(..)
            | Action::SetBits(Bits { field: Field::SourcePort | Field::DestinationPort, .. })
                if !is_ip || !matches!(matches.exact(key::NW_PROTO), Some(6 | 17)) =>
            {
                needs("tcp or udp, or tcp6 or udp6")
            }
            // Setting a field of a tag requires a tag.
            Action::Tag(_) if word.starts_with("set_field") => {
                let tags = |last: &Action| matches!(last, Action::Tag(tag) if *tag != Tag::Pop);
                let last = before.iter().rev().find(|a| matches!(a, Action::Tag(_)));
                if last.map_or(matches.is_tagged(), tags) {
                    return Ok(());
                }
                let right = "the rule has to match a tag (dl_vlan=…, or vlan_tci=0x1000/0x1000), or \
                             push one first; mod_vlan_vid and mod_vlan_pcp need no tag";
                Err(RuleError::new(word, right))
            }
            _ => Ok(()),
        }
    }

    fn read(word: &str, names: &dyn Names) -> Result<Action, RuleError> {
        // `output:port0`, `ct(commit)`, `output=port0`.
        let end = word.find([':', '(', '=']).unwrap_or(word.len());
        let (name, rest) = word.split_at(end);
        let argument = rest.strip_prefix([':', '=']).unwrap_or(rest);
        let argument = match argument.strip_prefix('(') {
            Some(inner) => inner.strip_suffix(')').unwrap_or(inner),
            None => argument,
        };
        let port = |name: &str| match names.number(name) {
            Some(_) => Ok(Action::Output(name.to_owned())),
            None => Err(RuleError::new(word, "the name of an interface expected")),
        };
        Ok(match name.to_ascii_lowercase().as_str() {
            "normal" => Action::Normal,
            "drop" => Action::Drop,
            "in_port" => Action::InPort,
            "output" if argument.eq_ignore_ascii_case("in_port") => Action::InPort,
            "output" => return port(argument),
            "resubmit" => {
                let (port, number) = match argument.split_once(',') {
                    Some((port, number)) => (port.trim(), Some(number.trim())),
                    None => (argument, None),
                };
                let as_it_came = port.is_empty() || port.eq_ignore_ascii_case("in_port");
                if !as_it_came && names.number(port).is_none() {
                    return Err(RuleError::new(
                        word,
                        "resubmit(,TABLE), or the name of an interface in it, expected",
                    ));
                }
                let number = number.map(|number| table(word, number)).transpose()?;
                if as_it_came && number.is_none() {
                    return Err(RuleError::new(
                        word,
                        "a table or the name of an interface expected",
                    ));
                }
                Action::Resubmit((!as_it_came).then(|| port.to_owned()), number)
            }
            "goto_table" | "goto" => Action::Resubmit(None, Some(table(word, argument)?)),
            "ct" => Action::Ct(Ct::read(word, argument)?),
            "ct_clear" => Action::CtClear,
            "mod_dl_src" => Action::SetSource(mac(word, argument)?),
            "mod_dl_dst" => Action::SetDestination(mac(word, argument)?),
            "mod_nw_tos" => match byte(word, argument)? {
                tos if tos & 3 == 0 => Action::SetTos(tos),
                _ => return Err(RuleError::new(word, "a multiple of 4 expected")),
            },
            "mod_nw_ecn" => match byte(word, argument)? {
                ecn if ecn < 4 => Action::SetEcn(ecn),
                _ => return Err(RuleError::new(word, "a number up to 3 expected")),
            },
            "dec_ttl" if argument.is_empty() => Action::DecTtl,
            "dec_ttl" => {
                return Err(RuleError::new(
                    word,
                    "dec_ttl takes no arguments: there is no controller to notify",
                ));
            }
            "mod_nw_ttl" => Action::SetTtl(byte(word, argument)?),
            "mod_nw_src" => Action::SetAddress(true, address(word, argument)?),
            "mod_nw_dst" => Action::SetAddress(false, address(word, argument)?),
            "mod_tp_src" => Action::SetPort(true, port_number(word, argument)?),
            "mod_tp_dst" => Action::SetPort(false, port_number(word, argument)?),
            "push_vlan" => match number(argument) {
                Some(kind) if kind == ether::VLAN.into() => Action::Tag(Tag::Push(ether::VLAN)),
                Some(kind) if kind == ether::QINQ.into() => Action::Tag(Tag::Push(ether::QINQ)),
                _ => return Err(RuleError::new(word, "push_vlan:0x8100 or 0x88a8 expected")),
            },
            "pop_vlan" | "strip_vlan" if argument.is_empty() => Action::Tag(Tag::Pop),
            "mod_vlan_vid" | "set_vlan_vid" => Action::Tag(Tag::Id(vlan_id(word, argument)?)),
            "mod_vlan_pcp" | "set_vlan_pcp" => {
                Action::Tag(Tag::Priority(priority(word, argument)?))
            }
            "set_field" => set::set_field(word, argument)?,
            "load" => set::load(word, argument)?,
            "note" if argument.chars().all(|c| c.is_ascii_hexdigit() || c == '.') => {
                Action::Note(argument.to_owned())
            }
            "note" => return Err(RuleError::new(word, "hexadecimal digits and dots expected")),
            _ if rest.is_empty() && names.number(name).is_some() => return port(name),
            lower => {
                let known = "normal, drop, output:PORT, in_port, ct(…), ct_clear, resubmit(PORT,TABLE), \
                             goto_table:TABLE, mod_dl_src, mod_dl_dst, mod_nw_src, mod_nw_dst, \
                             mod_nw_tos, mod_nw_ecn, mod_nw_ttl, dec_ttl, mod_tp_src, mod_tp_dst, push_vlan, \
                             pop_vlan, strip_vlan, mod_vlan_vid, mod_vlan_pcp, set_field, load and note";
                let what = unsupported::action(lower);
                let what = what.unwrap_or_else(|| "unknown action".into());
                return Err(RuleError::new(word, format!("{what}; known are {known}")));
            }
        })
    }
}

fn vlan_id(word: &str, text: &str) -> Result<u16, RuleError> {
    let number = number(text).and_then(|n| u16::try_from(n).ok()).filter(|n| *n < 4096);
    number.ok_or_else(|| RuleError::new(word, "a VLAN up to 4095 expected"))
}

fn priority(word: &str, text: &str) -> Result<u8, RuleError> {
    let number = number(text).and_then(|n| u8::try_from(n).ok()).filter(|n| *n < 8);
    number.ok_or_else(|| RuleError::new(word, "a priority from 0 to 7 expected"))
}

impl Ct {
    fn read(word: &str, text: &str) -> Result<Ct, RuleError> {
        let mut ct = Ct::default();
        for part in split(text)? {
            let end = part.find(['=', '(']).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            let value = rest.trim_start_matches('=');
            match name {
                "commit" => ct.commit = true,
                "force" => ct.force = true,
                "table" => ct.table = Some(table(word, value)?),
                "zone" => {
                    let zone = number(value).and_then(|n| u16::try_from(n).ok());
                    let wrong = || RuleError::new(part, "a zone from 0 to 65535 expected");
                    ct.zone = zone.ok_or_else(wrong)?;
                }
                "exec" => {
                    let inner = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')'));
                    let wrong = || RuleError::new(part, "exec(ACTIONS) expected");
                    ct.exec(inner.ok_or_else(wrong)?)?;
                }
                "nat" => ct.nat = Some(Nat::read(part, rest)?),
                _ => {
                    let known = "commit, force, table=N, zone=N, exec(…) and nat(…)";
                    let why = match name {
                        "alg" => {
                            "not supported: application payload is not parsed; \
                                  for FTP use passive mode; "
                        }
                        _ => "",
                    };
                    return Err(RuleError::new(part, format!("{why}ct takes {known}")));
                }
            }
        }
        Ok(ct)
    }

    fn exec(&mut self, text: &str) -> Result<(), RuleError> {
        for part in split(text)? {
            let wrong = || {
                let right = "set_field:VALUE->ct_mark or ct_label, or load:VALUE->NXM_NX_CT_MARK[]";
                RuleError::new(part, format!("{right} expected"))
            };
            let rest = part.strip_prefix("set_field:").or_else(|| part.strip_prefix("load:"));
            let (value, field) = rest.and_then(|r| r.split_once("->")).ok_or_else(wrong)?;
            match field.trim_end_matches("[]").to_ascii_lowercase().as_str() {
                "ct_mark" | "nxm_nx_ct_mark" => {
                    let (value, mask) = masked(value, u32::MAX.into()).ok_or_else(wrong)?;
                    self.mark = Some((value as u32, mask as u32));
                }
                "ct_label" | "nxm_nx_ct_label" => {
                    self.label = Some(masked(value, u128::MAX).ok_or_else(wrong)?);
                }
                _ => return Err(wrong()),
            }
        }
        Ok(())
    }

    /// Checks prerequisites, as Open vSwitch does.
    fn check(&self, word: &str, matches: &Match) -> Result<(), RuleError> {
        if !matches.is_ip() {
            return Err(RuleError::new(
                word,
                "the rule has to match ip or ipv6, or a protocol on it",
            ));
        }
        if self.commit && matches.wants_invalid() {
            return Err(RuleError::new(
                word,
                "invalid packets (ct_state=+inv) cannot be committed",
            ));
        }
        if !self.commit && (self.force || self.mark.is_some() || self.label.is_some()) {
            return Err(RuleError::new(word, "force and exec require commit"));
        }
        if !self.commit && self.nat.as_ref().is_some_and(|nat| nat.range.is_some()) {
            return Err(RuleError::new(word, "nat with src or dst requires commit"));
        }
        let range = self.nat.as_ref().and_then(|nat| nat.range.as_ref());
        let ipv6 = matches.exact(key::DL_TYPE) == Some(0x86dd);
        if range.is_some_and(|range| range.is_ipv6() != ipv6) {
            return Err(RuleError::new(
                word,
                "the rule has to match the family of nat's addresses: ip or ipv6, or a protocol on it",
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Normal => f.write_str("normal"),
            Action::Output(name) => write!(f, "output:{name}"),
            Action::InPort => f.write_str("in_port"),
            Action::Drop => f.write_str("drop"),
            Action::Resubmit(port, Some(table)) => {
                write!(f, "resubmit({},{table})", port.as_deref().unwrap_or_default())
            }
            Action::Resubmit(port, None) => {
                write!(f, "resubmit:{}", port.as_deref().unwrap_or_default())
            }
            Action::Ct(ct) => ct.fmt(f),
            Action::CtClear => f.write_str("ct_clear"),
            Action::SetSource(mac) => write!(f, "mod_dl_src:{mac}"),
            Action::SetDestination(mac) => {
                write!(f, "mod_dl_dst:{mac}")
            }
            Action::SetTos(tos) => write!(f, "mod_nw_tos:{tos}"),
            Action::SetEcn(ecn) => write!(f, "mod_nw_ecn:{ecn}"),
            Action::DecTtl => f.write_str("dec_ttl"),
            Action::SetBits(bits) => bits.fmt(f),
            Action::SetTtl(ttl) => write!(f, "mod_nw_ttl:{ttl}"),
            Action::SetAddress(true, to) => write!(f, "mod_nw_src:{to}"),
            Action::SetAddress(false, to) => write!(f, "mod_nw_dst:{to}"),
            Action::SetAddress6(source, to, mask) => {
                write!(f, "set_field:{to}")?;
                if mask.to_bits() != u128::MAX {
                    write!(f, "/{mask}")?;
                }
                f.write_str(if *source { "->ipv6_src" } else { "->ipv6_dst" })
            }
            Action::SetPort(true, to) => write!(f, "mod_tp_src:{to}"),
            Action::SetPort(false, to) => write!(f, "mod_tp_dst:{to}"),
            Action::Tag(Tag::Push(kind)) => write!(f, "push_vlan:{kind:#06x}"),
            Action::Tag(Tag::Pop) => f.write_str("strip_vlan"),
            Action::Tag(Tag::Id(id)) => write!(f, "mod_vlan_vid:{id}"),
            Action::Tag(Tag::Priority(priority)) => write!(f, "mod_vlan_pcp:{priority}"),
            Action::Note(note) => write!(f, "note:{note}"),
        }
    }
}

/// The order is Open vSwitch's: commit, force, table, zone, exec, nat.
impl fmt::Display for Ct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.commit {
            parts.push("commit".to_owned());
        }
        if self.force {
            parts.push("force".to_owned());
        }
        parts.extend(self.table.map(|table| format!("table={table}")));
        if self.zone != 0 {
            parts.push(format!("zone={}", self.zone));
        }
        let mut sets = Vec::new();
        if let Some((value, mask)) = self.mark {
            let mask = if mask == u32::MAX { String::new() } else { format!("/{mask:#x}") };
            sets.push(format!("set_field:{value:#x}{mask}->ct_mark"));
        }
        if let Some((value, mask)) = self.label {
            let mask = if mask == u128::MAX { String::new() } else { format!("/{mask:#x}") };
            sets.push(format!("set_field:{value:#x}{mask}->ct_label"));
        }
        if !sets.is_empty() {
            parts.push(format!("exec({})", sets.join(",")));
        }
        parts.extend(self.nat.as_ref().map(Nat::to_string));
        if parts.is_empty() { f.write_str("ct") } else { write!(f, "ct({})", parts.join(",")) }
    }
}
