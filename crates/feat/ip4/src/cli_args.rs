//! CLI arguments shared by commands: prefixes, routes and their paths; and error codes.

use crate::address::AddressError;
use crate::{Ip4, Path, PathKind, RibError, RouteError};
use std::net::Ipv4Addr;
use std::time::Instant;
use thalweg_cli::{Args, CliError, Outcome, Output, Task, TaskPoll};
use thalweg_device::command_line::{interface_arg, interface_names, refused};
use thalweg_graph::Control;
use thalweg_tables::Ipv4Prefix;

/// Words for special paths, VPP's own last.
const SPECIAL: [(&str, PathKind); 6] = [
    ("drop", PathKind::Drop),
    ("local", PathKind::Local),
    ("unreachable", PathKind::Unreachable),
    ("prohibit", PathKind::Prohibit),
    ("null-send-unreach", PathKind::Unreachable),
    ("null-send-prohibit", PathKind::Prohibit),
];
/// Words that end a path.
const KEYWORDS: [&str; 5] = ["via", "table", "count", "weight", "next-hop-table"];

/// Outcome of a command that changed a route: it waits until those of deleted interfaces are gone.
pub(crate) fn when_resolved(c: &Control) -> Outcome<Control> {
    match c.state::<Ip4>().borrow().is_resolved() {
        true => Outcome::Done,
        false => Outcome::pending(AwaitResolution),
    }
}

struct AwaitResolution;

impl Task<Control> for AwaitResolution {
    fn poll(&mut self, c: &mut Control, now: Instant, _: &mut Output) -> TaskPoll {
        if crate::route::settle_slice(c) { TaskPoll::Done } else { TaskPoll::At(now) }
    }
}

/// Converts a route error to a command's error with its return code.
pub(crate) fn route_failed(e: RouteError) -> CliError {
    let code = match e {
        RouteError::Rib(RibError::Device(e)) => return refused(e),
        RouteError::NoTable(_) => -3,
        RouteError::NoRoute { .. } => -6,
        RouteError::TableInUse { .. } | RouteError::TableTracked(_) | RouteError::MainTable => -122,
        _ => -1,
    };
    CliError::with_code(e, code)
}

/// Converts an address error to a command's error with its return code.
pub(crate) fn address_failed(e: AddressError) -> CliError {
    let code = match e {
        AddressError::Device(e) => return refused(e),
        AddressError::Route(e) => return route_failed(e),
        AddressError::Overlap { .. } => -105,
        AddressError::Missing { .. } => -60,
        AddressError::HasAddresses(_) => -114,
        AddressError::Unusable(..) => -7,
    };
    CliError::with_code(e, code)
}

/// Takes a table id.
pub(crate) fn table_arg(args: &mut Args<'_>) -> Result<u32, CliError> {
    args.u32("table")
}

/// Checks that a table exists.
pub(crate) fn known_table(c: &Control, table: u32) -> Result<u32, CliError> {
    match c.state::<Ip4>().borrow().table_ids().contains(&table) {
        true => Ok(table),
        false => Err(route_failed(RouteError::NoTable(table))),
    }
}

/// Clears the host bits of a prefix.
pub(crate) fn masked((addr, len): (Ipv4Addr, u8)) -> Result<Ipv4Prefix, CliError> {
    Ipv4Prefix::new(addr.to_bits(), len).map_err(CliError::failed)
}

/// A route as typed.
#[derive(Debug)]
pub(crate) struct RouteSpec {
    pub(crate) prefix: Ipv4Prefix,
    pub(crate) table: u32,
    /// Number of consecutive prefixes.
    pub(crate) count: u32,
    pub(crate) paths: Vec<Path>,
}

/// Takes a route. Its parts may come in any order, as in VPP.
pub(crate) fn route_args(c: &Control, args: &mut Args<'_>) -> Result<RouteSpec, CliError> {
    let (mut prefix, mut table, mut count, mut paths) = (None, 0, 1, Vec::new());
    while !args.is_empty() {
        if args.exact("table") {
            table = table_arg(args)?;
        } else if args.exact("count") {
            count = args.number("count", 1, u64::from(u32::MAX))? as u32;
        } else if args.exact("via") {
            paths.push(path(c, args)?);
        } else if let Some(kind) = special(args) {
            paths.push(Path::special(kind));
        } else if prefix.is_none() {
            prefix = Some(masked(args.ipv4_prefix("prefix")?)?);
        } else {
            args.end()?;
        }
    }
    let Some(prefix) = prefix else {
        return Err(args.bad("prefix", "an IPv4 prefix such as 192.0.2.0/24"));
    };
    let room = (u64::from(u32::MAX - prefix.addr()) >> (32 - prefix.len())) + 1;
    if u64::from(count) > room {
        let (len, from) = (prefix.len(), Ipv4Addr::from_bits(prefix.addr()));
        return Err(CliError::failed(format_args!(
            "count {count}: there are only {room} prefixes of length {len} from {from} on"
        )));
    }
    if let [_, _, ..] = paths[..]
        && let Some(p) = paths.iter().find(|p| p.kind != PathKind::Normal)
    {
        return Err(CliError::failed(format_args!(
            "`{}' cannot share a route with other paths",
            kind_word(p.kind)
        )));
    }
    Ok(RouteSpec { prefix, table, count, paths })
}

fn special(args: &mut Args<'_>) -> Option<PathKind> {
    SPECIAL.iter().find(|(word, _)| args.exact(word)).map(|(_, kind)| *kind)
}

/// Kind of path for a word.
pub(crate) fn special_kind(word: &str) -> Option<PathKind> {
    SPECIAL.iter().find(|(w, _)| *w == word).map(|(_, kind)| *kind)
}

/// Takes the arguments after `via`.
fn path(c: &Control, args: &mut Args<'_>) -> Result<Path, CliError> {
    if let Some(kind) = special(args) {
        return Ok(Path::special(kind));
    }
    let Some(word) = args.peek().filter(|w| !KEYWORDS.contains(w)) else {
        return Err(args.bad("path", "a next hop, an interface, or a word such as `drop'"));
    };
    let mut path = match args.maybe(|a| a.ipv4("next hop")) {
        Some(next_hop) => {
            let more = args.peek().is_some_and(|w| !KEYWORDS.contains(&w));
            let sw_if = if more { Some(interface_arg(c, args)?) } else { None };
            Path::via(next_hop, sw_if)
        }
        // A bare number would pass as an interface index, but is more likely a typing error.
        None if word.parse::<u32>().is_ok() => {
            return Err(args.bad("path", "a next hop such as 192.0.2.1, or an interface's name"));
        }
        None => Path::connected(interface_arg(c, args)?),
    };
    if path.sw_if.is_none() && args.exact("next-hop-table") {
        path.table = Some(known_table(c, table_arg(args)?)?);
    }
    if args.exact("weight") {
        path.weight = args.number("weight", 1, u64::from(u8::MAX))? as u8;
    }
    Ok(path)
}

/// Completions of a route.
pub(crate) fn complete_route(c: &Control, before: &[&str]) -> Vec<String> {
    let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let specials = || SPECIAL[..4].iter().map(|(w, _)| (*w).to_owned());
    match before {
        [] => words(&["add", "del", "replace"]),
        [_] => words(&["table", "count"]),
        [.., "table" | "count" | "weight" | "next-hop-table"] => Vec::new(),
        [.., "via"] => interface_names(c).into_iter().chain(specials()).collect(),
        [.., "via", hop] if hop.parse::<Ipv4Addr>().is_ok() => {
            interface_names(c).into_iter().chain(words(&KEYWORDS)).collect()
        }
        _ if before.contains(&"via") => words(&KEYWORDS),
        _ => words(&KEYWORDS[..3]).into_iter().chain(specials()).collect(),
    }
}

/// Word for a kind of path.
pub(crate) fn kind_word(kind: PathKind) -> &'static str {
    match kind {
        PathKind::Normal => "normal",
        PathKind::Local => "local",
        PathKind::Drop => "drop",
        PathKind::Unreachable => "unreachable",
        PathKind::Prohibit => "prohibit",
        PathKind::Lookup(_) => "lookup",
        PathKind::Group(_) => "group",
    }
}
