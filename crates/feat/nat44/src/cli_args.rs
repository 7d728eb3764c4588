//! Addresses and mappings as CLI arguments, as used in commands and documents.

use crate::mapping::{Backend, Mapping, TwiceNat};
use crate::ports::Scheme;
use crate::state::{Address, StaticMapping};
use std::net::Ipv4Addr;
use thalweg_device::SwIfIndex;
use thalweg_fib::TableId;
use thalweg_wire::ip::protocol;

/// Groups consecutive addresses with the same attributes.
pub(crate) fn ranges<'a>(all: impl Iterator<Item = &'a Address>) -> Vec<(Address, Ipv4Addr)> {
    let mut ranges: Vec<(Address, Ipv4Addr)> = Vec::new();
    for a in all {
        match ranges.last_mut() {
            Some((first, last))
                if (first.twice, first.table) == (a.twice, a.table)
                    && last.to_bits().checked_add(1) == Some(a.address.to_bits()) =>
            {
                *last = a.address;
            }
            _ => ranges.push((*a, a.address)),
        }
    }
    ranges
}

/// The arguments of `nat44 add address`.
pub(crate) fn range_text((first, last): &(Address, Ipv4Addr)) -> String {
    let mut text = first.address.to_string();
    if *last != first.address {
        text += &format!(" - {last}");
    }
    if let Some(table) = first.table {
        text += &format!(" tenant-vrf {table}");
    }
    if first.twice {
        text += " twice-nat";
    }
    text
}

/// Parses a list of numbers such as `0,2-3`.
pub(crate) fn numbers(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then(|| all.extend((first..=last).map(usize::from)))?;
    }
    Some(all)
}

/// Formats a list of numbers.
pub(crate) fn numbers_text(all: &[u16]) -> String {
    all.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}

/// Formats a routing table with the tables that its hosts reach.
pub(crate) fn vrf_text((table, routes): (&TableId, &Vec<TableId>)) -> String {
    let mut text = table.to_string();
    if !routes.is_empty() {
        text += " reaches";
    }
    routes.iter().for_each(|to| text += &format!(" {to}"));
    text
}

/// Parses a routing table with the tables that its hosts reach.
pub(crate) fn vrf(text: &str) -> Option<(TableId, Vec<TableId>)> {
    let mut words = text.split_whitespace();
    let table = words.next()?.parse().ok()?;
    match words.next() {
        None => return Some((table, Vec::new())),
        Some("reaches") => {}
        Some(_) => return None,
    }
    let routes: Vec<TableId> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    (!routes.is_empty()).then_some((table, routes))
}

/// The arguments of `nat addr-port-assignment-alg`.
pub(crate) fn scheme_text(scheme: Scheme) -> String {
    match scheme {
        Scheme::All => "default".into(),
        Scheme::Range(first, last) => format!("port-range {first} - {last}"),
        Scheme::MapE { psid, offset, length } => {
            format!("map-e psid {psid} psid-offset {offset} psid-len {length}")
        }
    }
}

fn protocol_word(ip: u8) -> &'static str {
    match ip {
        protocol::TCP => "tcp",
        protocol::UDP => "udp",
        _ => "icmp",
    }
}

/// A static mapping as the command that adds it, and its arguments.
pub(crate) fn mapping_text(
    m: &StaticMapping,
    inside_vrf: TableId,
    interface: impl Fn(SwIfIndex) -> String,
) -> (Family, String) {
    let Mapping { protocol: ip, external, external_port, local, local_port, table, .. } = m.mapping;
    let external = m.external_if.map_or_else(|| external.to_string(), interface);
    let port = |port: u16| if ip == 0 { String::new() } else { format!(" {port}") };
    let kind = if ip == 0 { "" } else { protocol_word(ip) };
    let mut text;
    let family = match () {
        () if m.identity => {
            let name = if m.external_if.is_some() { "external " } else { "" };
            text = format!("{name}{external}");
            if ip != 0 {
                text += &format!(" {kind} {external_port}");
            }
            Family::Identity
        }
        () if !m.mapping.backends.is_empty() => {
            text = format!("protocol {kind} external {external}:{external_port}");
            for Backend { address, port, table, share } in &m.mapping.backends {
                text += &format!(" local {address}:{port}");
                if *table != TableId(0) {
                    text += &format!(" vrf {table}");
                }
                text += &format!(" probability {share}");
            }
            Family::Balanced
        }
        () => {
            let kind = if ip == 0 { String::new() } else { format!("{kind} ") };
            text = format!(
                "{kind}local {local}{} external {external}{}",
                port(local_port),
                port(external_port)
            );
            Family::Static
        }
    };
    if table != inside_vrf && m.mapping.backends.is_empty() {
        text += &format!(" vrf {table}");
    }
    match m.mapping.twice {
        TwiceNat::Never => {}
        TwiceNat::Always => text += " twice-nat",
        TwiceNat::SelfOnly => text += " self-twice-nat",
    }
    if m.mapping.out2in_only {
        text += " out2in-only";
    }
    if let Some(address) = m.mapping.exact {
        text += &format!(" exact {address}");
    }
    if m.mapping.affinity != 0 {
        text += &format!(" affinity {}", m.mapping.affinity);
    }
    if !m.tag.is_empty() {
        text += &format!(" tag '{}'", m.tag);
    }
    (family, text)
}

/// Commands that add mappings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    /// `nat44 add static mapping`
    Static,
    /// `nat44 add identity mapping`
    Identity,
    /// `nat44 add load-balancing static mapping`
    Balanced,
}

impl Family {
    pub(crate) const ALL: [Family; 3] = [Family::Static, Family::Identity, Family::Balanced];

    /// Its list in a configuration document.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Family::Static => "static-mappings",
            Family::Identity => "identity-mappings",
            Family::Balanced => "load-balancing",
        }
    }

    /// Its command.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Family::Static => "nat44 add static mapping",
            Family::Identity => "nat44 add identity mapping",
            Family::Balanced => "nat44 add load-balancing static mapping",
        }
    }
}
