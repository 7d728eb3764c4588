//! CLI arguments shared by commands: prefixes, routes and their paths; and error codes.

use crate::address::AddressError;
use crate::family::{Version, from_number, is_registered, to_number};
use crate::{Ip, Path, PathKind, RibError, RouteError};
use std::net::IpAddr;
use std::time::Instant;
use thalweg_cli::{Args, CliError, Outcome, Output, Task, TaskPoll};
use thalweg_device::SwIfIndex;
use thalweg_device::command_line::{interface_arg, interface_names, interface_or, refused};
use thalweg_fib::label_text::{LABEL_WORDS, label_of};
use thalweg_fib::path_words::{KEYWORDS, PathWords, end_of, read_path};
use thalweg_fib::{PathText, Place, TableId};
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix};
use thalweg_wire::mpls::Label;

/// Outcome of a command that changed a route: it waits until those of deleted interfaces are gone.
pub(crate) fn when_resolved(c: &Control) -> Outcome<Control> {
    let ip4 = c.state::<Ip<u32>>().borrow().is_resolved();
    match ip4 && c.state::<Ip<u128>>().borrow().is_resolved() {
        true => Outcome::Done,
        false => Outcome::pending(AwaitResolution),
    }
}

struct AwaitResolution;

impl Task<Control> for AwaitResolution {
    fn poll(&mut self, c: &mut Control, now: Instant, _: &mut Output) -> TaskPoll {
        if crate::table::settle_slice(c) { TaskPoll::Done } else { TaskPoll::At(now) }
    }
}

/// Converts a route error to a command's error with its return code.
pub(crate) fn route_failed(e: RouteError) -> CliError {
    let code = match e {
        RouteError::Rib(RibError::Device(e)) => return refused(e),
        RouteError::NoFamily(_) => -9,
        RouteError::NoTable(..) => -3,
        RouteError::NoRoute { .. } => -6,
        RouteError::TableInUse { .. } | RouteError::TableTracked(_) | RouteError::MainTable => -122,
        _ => -1,
    };
    CliError::with_code(e, code)
}

/// Converts an address error to a command's error with its return code.
pub fn address_failed(e: AddressError) -> CliError {
    let code = match e {
        AddressError::Device(e) => return refused(e),
        AddressError::Route(e) => return route_failed(e),
        AddressError::Overlap { .. } | AddressError::Present { .. } | AddressError::Routed(..) => {
            -105
        }
        AddressError::Missing { .. } => -60,
        AddressError::NotDeletable(..) => -61,
        AddressError::NotExact | AddressError::Local => -126,
        AddressError::HasAddresses(_) => -114,
        AddressError::Unusable(..) | AddressError::OwnLender(_) => -7,
        AddressError::NotUnnumbered(_) => -6,
    };
    CliError::with_code(e, code)
}

/// Takes a table id.
pub(crate) fn table_arg(args: &mut Args<'_>) -> Result<TableId, CliError> {
    args.u32("table").map(TableId)
}

/// Checks that a table exists.
pub(crate) fn known_table<A: Address>(c: &Control, table: TableId) -> Result<TableId, CliError> {
    let ip = c.state::<Ip<A>>();
    let ip = ip.borrow();
    match ip.serial(table) {
        Some(_) => Ok(table),
        None => Err(route_failed(ip.no_table(table))),
    }
}

/// Takes an address of a version that the router has.
pub(crate) fn address_arg(
    c: &Control,
    args: &mut Args<'_>,
    what: &str,
) -> Result<IpAddr, CliError> {
    match [Version::V4, Version::V6].map(|v| is_registered(c, v)) {
        [true, false] => args.ipv4(what).map(IpAddr::V4),
        [false, true] => args.ipv6(what).map(IpAddr::V6),
        _ => args.ip(what),
    }
}

/// Takes a prefix of a version that the router has; bits beyond the length are kept.
pub(crate) fn prefix_arg(
    c: &Control,
    args: &mut Args<'_>,
    what: &str,
) -> Result<(IpAddr, u8), CliError> {
    match [Version::V4, Version::V6].map(|v| is_registered(c, v)) {
        [true, false] => args.ipv4_prefix(what).map(|(a, len)| (a.into(), len)),
        [false, true] => args.ipv6_prefix(what).map(|(a, len)| (a.into(), len)),
        _ => args.ip_prefix(what),
    }
}

/// A route as typed.
#[derive(Debug)]
pub(crate) struct RouteSpec {
    pub(crate) prefix: (IpAddr, u8),
    pub(crate) table: TableId,
    /// Number of consecutive prefixes.
    pub(crate) count: u32,
    pub(crate) paths: Vec<Path>,
}

/// Takes a route. Its parts may come in any order, as in VPP.
pub(crate) fn route_args(c: &Control, args: &mut Args<'_>) -> Result<RouteSpec, CliError> {
    let (mut prefix, mut table, mut count) = (None, TableId(0), 1);
    let mut paths: Vec<PathText<SwIfIndex>> = Vec::new();
    while !args.is_empty() {
        if args.exact("table") {
            table = table_arg(args)?;
        } else if args.exact("count") {
            count = args.number("count", 1, u64::from(u32::MAX))? as u32;
        } else if args.exact("via") {
            paths.push(path_arg(c, args)?);
        } else if let Some(kind) = args.peek().and_then(end_of) {
            args.word("path")?;
            paths.push(PathText::to(Place::End(kind)));
        } else if prefix.is_none() {
            prefix = Some(prefix_arg(c, args, "prefix")?);
        } else {
            args.end()?;
        }
    }
    let prefix = match prefix {
        Some(prefix) => prefix,
        // The call reports that the prefix is missing.
        None => prefix_arg(c, args, "prefix")?,
    };
    let alone = paths.iter().find(|p| p.place.kind() != Some(PathKind::Normal));
    if let ([_, _, ..], Some(alone)) = (&paths[..], alone) {
        return Err(CliError::failed(format_args!(
            "`{}' cannot share a route with other paths",
            alone.place.word()
        )));
    }
    let own = Version::of_ip(prefix.0);
    let paths = paths.into_iter().map(|path| route_path(path, own)).collect::<Result<_, _>>()?;
    Ok(RouteSpec { prefix, table, count, paths })
}

/// Checks that there are `count` prefixes from one on.
pub(crate) fn check_count<A: Address>(prefix: Prefix<A>, count: u32) -> Result<(), CliError> {
    let (len, first) = (prefix.len(), to_number(prefix.addr()));
    let left = to_number(Prefix::new(A::default(), 0).map_or(A::default(), Prefix::last)) - first;
    let room = left.checked_shr(u32::from(A::BITS - len)).unwrap_or(0).saturating_add(1);
    match u128::from(count) <= room {
        true => Ok(()),
        false => Err(CliError::failed(format_args!(
            "count {count}: there are only {room} prefixes of length {len} from {} on",
            prefix.addr().to_ip()
        ))),
    }
}

/// Returns the prefix that comes after `n` of the same length.
pub(crate) fn later<A: Address>(prefix: Prefix<A>, n: u32) -> Prefix<A> {
    let step = u128::from(n).checked_shl(u32::from(A::BITS - prefix.len())).unwrap_or(0);
    let addr = to_number(prefix.addr()).checked_add(step).and_then(from_number);
    addr.and_then(|addr| Prefix::new(addr, prefix.len()).ok()).unwrap_or(prefix)
}

/// Takes a label.
///
/// # Errors
/// If there is none.
pub fn label_arg(args: &mut Args<'_>) -> Result<Label, CliError> {
    args.with("label", LABEL_WORDS, label_of)
}

/// Arguments as words of a path.
struct PathArgs<'c, 'x, 'a> {
    c: &'c Control,
    args: &'x mut Args<'a>,
}

impl PathWords for PathArgs<'_, '_, '_> {
    type Interface = SwIfIndex;
    type Error = CliError;

    fn peek(&self) -> Option<&str> {
        self.args.peek().filter(|_| !self.args.at_group())
    }
    fn skip(&mut self) {
        // A word is there: it was looked at.
        let _ = self.args.word("word");
    }
    fn next_hop(&mut self) -> Result<IpAddr, CliError> {
        address_arg(self.c, self.args, "next hop")
    }
    fn interface(&mut self) -> Result<SwIfIndex, CliError> {
        interface_arg(self.c, self.args)
    }
    fn interface_or(&mut self, words: &[&str]) -> Result<SwIfIndex, CliError> {
        interface_or(self.c, self.args, "word after the next hop", words)
    }
    fn bad(&self, what: &str, expected: &str) -> CliError {
        self.args.bad(what, expected)
    }
}

/// Takes the arguments after `via`.
///
/// # Errors
/// If they are no path.
pub fn path_arg(c: &Control, args: &mut Args<'_>) -> Result<PathText<SwIfIndex>, CliError> {
    read_path(&mut PathArgs { c, args })
}

/// Returns a path as one of a version's routes.
///
/// # Errors
/// If no such route has it.
pub(crate) fn route_path(path: PathText<SwIfIndex>, own: Version) -> Result<Path, CliError> {
    path.route_path(own).map_err(CliError::failed)
}

pub(crate) fn complete_route(c: &Control, before: &[&str]) -> Vec<String> {
    let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let ends = || words(&["drop", "local", "unreachable", "prohibit"]);
    match before {
        [] => words(&["add", "del", "replace"]),
        [_] => words(&["table", "count"]),
        [.., "table" | "count" | "weight" | "preference" | "next-hop-table"] => Vec::new(),
        [.., "ip4-lookup-in-table" | "ip6-lookup-in-table" | "via-label"] => Vec::new(),
        [.., "rx-ip4" | "rx-ip6"] => interface_names(c),
        [.., "via"] => {
            let more = words(&["ip4-lookup-in-table", "rx-ip4", "via-label"]);
            [interface_names(c), ends(), more].concat()
        }
        [.., "via", hop] if hop.parse::<IpAddr>().is_ok() => {
            interface_names(c).into_iter().chain(words(&KEYWORDS)).collect()
        }
        _ if before.contains(&"via") => words(&KEYWORDS),
        _ => words(&KEYWORDS[..3]).into_iter().chain(ends()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count_agrees<A: Address>(addr: A, len: u8, count: u32) -> Result<(), TestCaseError> {
        let prefix = Prefix::new(addr, len % (A::BITS + 1)).unwrap();
        let last = later(prefix, count - 1);
        let fits = check_count(prefix, count).is_ok();
        if fits {
            prop_assert_eq!((last.len(), last >= prefix), (prefix.len(), true));
            prop_assert_eq!(count == 1, last == prefix);
            // The next one lies directly behind, or there is none.
            let next = to_number(last.last()).checked_add(1).and_then(from_number::<A>);
            let more = check_count(prefix, count + 1).is_ok();
            prop_assert_eq!(more, next.is_some());
            prop_assert_eq!(next, more.then(|| later(prefix, count).addr()));
        } else {
            prop_assert!(count > 1);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn prefixes_follow_each_other(
            addr: u128, high: bool, len: u8, count in prop_oneof![1u32..4, 1..u32::MAX],
        ) {
            let addr = if high { addr | u128::MAX << 4 } else { addr };
            count_agrees(addr, len, count)?;
            count_agrees(addr as u32, len, count)?;
        }
    }
}
