//! Addresses and mappings as CLI arguments, as used in commands and documents.

use crate::ports::Scheme;
use crate::state::Address;
use std::net::Ipv4Addr;
use thalweg_cli::{Args, CliError};
use thalweg_fib::TableId;

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

/// Addresses of a pool in words: first, last, table, and whether they are for twice-NAT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolWords {
    pub(crate) first: Ipv4Addr,
    pub(crate) last: Ipv4Addr,
    pub(crate) table: Option<TableId>,
    pub(crate) twice: bool,
}

impl PoolWords {
    /// Takes the arguments of `nat44 add address`; false if they say `del`.
    ///
    /// # Errors
    /// If a word is missing or wrong.
    pub(crate) fn take(args: &mut Args<'_>) -> Result<(PoolWords, bool), CliError> {
        let first = args.ipv4("address")?;
        let last = if args.exact("-") { args.ipv4("last address")? } else { first };
        let (mut table, mut twice, mut add) = (None, false, true);
        while !args.is_empty() {
            if args.keyword("tenant-vrf") {
                table = Some(TableId(args.u32("table")?));
            } else if args.keyword("twice-nat") {
                twice = true;
            } else if args.exact("del") {
                add = false;
            } else {
                args.end()?;
            }
        }
        Ok((PoolWords { first, last, table, twice }, add))
    }
}

/// Parses a list of numbers such as `0,2-3`.
pub(crate) fn numbers(text: &str) -> Option<Vec<u16>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then(|| all.extend(first..=last))?;
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
