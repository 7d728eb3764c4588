//! Proxy ARP (RFC 1027): ranges of addresses that the router answers for, and the interfaces on
//! which it does.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use thalweg_config::declare::{Doc, Draft, Dump, Item, Kind, Rule, Section, Value, rank};
use thalweg_device::{DeviceError, InterfaceEvent, SwIfIndex, interface};
use thalweg_feat_arp::{answer_for_ranges, set_proxy};
use thalweg_feat_ip::{Ip4, TableDeleted, TableId, Version};
use thalweg_graph::Control;

/// Maximum number of ranges.
pub const MAX_RANGES: usize = 1024;

/// A range of addresses in a table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Range {
    /// The table of the interfaces on which requests come.
    pub table: TableId,
    /// First address.
    pub first: Ipv4Addr,
    /// Last address.
    pub last: Ipv4Addr,
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} - {}", self.first, self.last)?;
        match self.table {
            TableId(0) => Ok(()),
            table => write!(f, " table-id {table}"),
        }
    }
}

/// Reason why a change of proxy ARP is refused.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The table does not exist.
    #[error("no IPv4 table {0}; `ip table add {0}` makes one")]
    NoTable(TableId),
    /// The last address is before the first.
    #[error("the range ends at {last}, before its first address {first}")]
    Order {
        /// First address.
        first: Ipv4Addr,
        /// Last address.
        last: Ipv4Addr,
    },
    /// The list is full.
    #[error("no room for another range of proxy ARP: the limit is {MAX_RANGES}")]
    Full,
    /// The range does not exist.
    #[error("no such range {0}; `show arp proxy` lists them")]
    Unknown(Range),
    /// The interface does not exist.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

#[derive(Default)]
struct ProxyArp {
    ranges: BTreeSet<Range>,
    interfaces: BTreeSet<SwIfIndex>,
}

pub(crate) fn init(c: &mut Control) {
    c.insert(ProxyArp::default());
    c.subscribe(|c, event: &InterfaceEvent| {
        if let InterfaceEvent::Deleted(i) = *event
            && c.state::<ProxyArp>().borrow_mut().interfaces.remove(&i)
        {
            set_proxy(c, i, false);
        }
    });
    c.subscribe(|c, gone: &TableDeleted| {
        if gone.version == Version::V4 {
            let had = ranges(c).len();
            c.state::<ProxyArp>().borrow_mut().ranges.retain(|range| range.table != gone.table);
            if ranges(c).len() < had {
                publish(c);
            }
        }
    });
}

fn publish(c: &mut Control) {
    let ranges = {
        let state = c.state::<ProxyArp>();
        let state = state.borrow();
        state.ranges.iter().map(|r| (r.table.get(), r.first, r.last)).collect()
    };
    answer_for_ranges(c, ranges);
}

/// Adds a range; one that is there stays.
///
/// # Errors
/// [`ProxyError`]; nothing has changed then.
pub fn add(c: &mut Control, range: Range) -> Result<(), ProxyError> {
    if c.state::<Ip4>().borrow().serial(range.table).is_none() {
        return Err(ProxyError::NoTable(range.table));
    }
    let Range { first, last, .. } = range;
    if first > last {
        return Err(ProxyError::Order { first, last });
    }
    {
        let state = c.state::<ProxyArp>();
        let ranges = &mut state.borrow_mut().ranges;
        if ranges.len() >= MAX_RANGES && !ranges.contains(&range) {
            return Err(ProxyError::Full);
        }
        ranges.insert(range);
    }
    publish(c);
    Ok(())
}

/// Removes a range.
///
/// # Errors
/// [`ProxyError::Unknown`].
pub fn remove(c: &mut Control, range: Range) -> Result<(), ProxyError> {
    if !c.state::<ProxyArp>().borrow_mut().ranges.remove(&range) {
        return Err(ProxyError::Unknown(range));
    }
    publish(c);
    Ok(())
}

/// Answers for the ranges on an interface, or not.
///
/// # Errors
/// If the interface does not exist.
pub fn set_interface(c: &mut Control, sw_if: SwIfIndex, on: bool) -> Result<(), ProxyError> {
    interface::view(c, sw_if)?;
    {
        let state = c.state::<ProxyArp>();
        let all = &mut state.borrow_mut().interfaces;
        if on {
            all.insert(sw_if)
        } else {
            all.remove(&sw_if)
        };
    }
    set_proxy(c, sw_if, on);
    Ok(())
}

/// Returns the ranges, in order.
pub fn ranges(c: &Control) -> Vec<Range> {
    c.state::<ProxyArp>().borrow().ranges.iter().copied().collect()
}

/// Returns the interfaces on which requests are answered.
pub fn interfaces(c: &Control) -> Vec<SwIfIndex> {
    c.state::<ProxyArp>().borrow().interfaces.iter().copied().collect()
}

/// Section of proxy ARP.
pub(crate) struct ProxySettings;

pub(crate) static SETTINGS: ProxySettings = ProxySettings;

const KEY: [&str; 2] = ["thalweg", "arp-proxies"];

const RULES: &[Rule] = &[
    Rule::new("thalweg.arp-proxies", Kind::List(0, MAX_RANGES)),
    Rule::new("thalweg.arp-proxies.[]", Kind::Other(check)),
];

/// Parses a range as it is shown.
fn parse(text: &str) -> Option<Range> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (range, table) = match words[..] {
        [first, "-", last] => ((first, last), "0"),
        [first, "-", last, "table-id", table] => ((first, last), table),
        _ => return None,
    };
    let (first, last) = (range.0.parse().ok()?, range.1.parse().ok()?);
    Some(Range { table: TableId(table.parse().ok()?), first, last }).filter(|_| first <= last)
}

fn check(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) if parse(text).is_some() => Ok(()),
        _ => Err("`<first> - <last> [table-id <id>]'".into()),
    }
}

impl Section<Control> for ProxySettings {
    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        for range in ranges(c) {
            out.push(&KEY, range.to_string());
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        let list = doc.at(&KEY);
        let nodes = list.iter().flat_map(|f| f.node.list().iter().map(|n| (n, f.path.clone())));
        for (range, path) in nodes.filter_map(|(n, path)| Some((parse(n.text()?)?, path))) {
            let Range { table, first, last } = range;
            let words = format!("table-id {table} start {first} end {last}");
            let set = format!("set arp proxy {words}");
            let item = Item::new(rank::ROUTE, format!("arp proxy {range}"), path, set);
            let item = item.unset(format!("set arp proxy del {words}"));
            out.add(match table {
                TableId(0) => item,
                // The key of the table's own item.
                id => item.needs(format!("ip-table {id}")),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_are_shown() {
        for text in ["10.0.0.1 - 10.0.0.9", "10.0.0.1 - 10.0.0.1 table-id 7"] {
            assert_eq!(parse(text).map(|r| r.to_string()).as_deref(), Some(text));
        }
        for bad in ["", "10.0.0.1", "10.0.0.9 - 10.0.0.1", "10.0.0.1 - x", "10.0.0.1 10.0.0.2"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
