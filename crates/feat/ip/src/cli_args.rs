//! CLI arguments shared by commands: prefixes, routes and their paths; and error codes.

use crate::address::AddressError;
use crate::family::{Version, from_number, is_registered, to_number};
use crate::{Ip, Path, PathKind, RibError, RouteError};
use std::iter::Peekable;
use std::net::IpAddr;
use std::time::Instant;
use thalweg_cli::{Args, CliError, Outcome, Output, Task, TaskPoll};
use thalweg_device::command_line::{interface_arg, interface_names, interface_or, refused};
use thalweg_fib::TableId;
use thalweg_fib::rib::{Labels, MAX_LABELS, Mark, Mode};
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix};
use thalweg_wire::mpls::{Label, MAX_LABEL, label};

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
const KEYWORDS: [&str; 7] =
    ["via", "table", "count", "weight", "preference", "next-hop-table", "out-labels"];

/// Words that may follow a next hop instead of an interface.
const AFTER_HOP: [&str; 5] = ["weight", "preference", "out-labels", "next-hop-table", "via"];

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
    let (mut prefix, mut table, mut count, mut paths) = (None, TableId(0), 1, Vec::new());
    while !args.is_empty() {
        if args.exact("table") {
            table = table_arg(args)?;
        } else if args.exact("count") {
            count = args.number("count", 1, u64::from(u32::MAX))? as u32;
        } else if args.exact("via") {
            paths.push(path(c, args, prefix)?);
        } else if let Some(kind) = special(args) {
            paths.push(Path::special(kind));
        } else if prefix.is_none() {
            prefix = Some(prefix_arg(c, args, "prefix")?);
        } else {
            args.end()?;
        }
    }
    let prefix = match prefix {
        Some(prefix) => prefix,
        // There is none: this says so.
        None => prefix_arg(c, args, "prefix")?,
    };
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

fn special(args: &mut Args<'_>) -> Option<PathKind> {
    SPECIAL.iter().find(|(word, _)| args.exact(word)).map(|(_, kind)| *kind)
}

/// Kind of path for a word.
pub(crate) fn special_kind(word: &str) -> Option<PathKind> {
    SPECIAL.iter().find(|(w, _)| *w == word).map(|(_, kind)| *kind)
}

/// Takes the table of a path that looks packets up again: `ip4-lookup-in-table 7`, or
/// `lookup in table 7`.
fn lookup_table(
    args: &mut Args<'_>,
    prefix: Option<(IpAddr, u8)>,
) -> Result<Option<TableId>, CliError> {
    for (word, version) in
        [("ip4-lookup-in-table", Version::V4), ("ip6-lookup-in-table", Version::V6)]
    {
        if args.exact(word) {
            return match prefix {
                Some((ip, _)) if Version::of_ip(ip) != version => {
                    Err(CliError::failed(format_args!("`{word}' is for {version} prefixes only")))
                }
                _ => table_arg(args).map(Some),
            };
        }
    }
    if !args.exact("lookup") {
        return Ok(None);
    }
    args.choice("word", &["in"])?;
    args.choice("word", &["table"])?;
    table_arg(args).map(Some)
}

/// Labels with a meaning of their own, as VPP writes them (RFC 3032 section 2.1, RFC 6790, RFC
/// 5586).
const LABEL_NAMES: [(&str, Label); 6] = [
    ("ip4-explicit-null", label::IPV4_EXPLICIT_NULL),
    ("router-alert", label::ROUTER_ALERT),
    ("ipv6-explicit-null", label::IPV6_EXPLICIT_NULL),
    ("implicit-null", label::IMPLICIT_NULL),
    ("entropy-label-indicator", label::ENTROPY_INDICATOR),
    ("gal", label::GAL),
];
/// Short words for some of them.
const SHORT_NAMES: [(&str, Label); 5] = [
    ("e-nul", label::IPV4_EXPLICIT_NULL),
    ("r-alt", label::ROUTER_ALERT),
    ("v6enl", label::IPV6_EXPLICIT_NULL),
    ("i-nul", label::IMPLICIT_NULL),
    ("pop", label::IMPLICIT_NULL),
];

/// Returns the label of a word: a number up to 1048575, or a name such as `implicit-null`.
pub fn label_of(word: &str) -> Option<Label> {
    let named = LABEL_NAMES.iter().chain(&SHORT_NAMES).find(|(name, _)| *name == word);
    let number = || word.parse().ok().map(Label).filter(|l| *l <= MAX_LABEL);
    named.map(|(_, label)| *label).or_else(number)
}

/// Labels below have a meaning of their own (RFC 7274), and no paths to be followed.
const FIRST_FREE: Label = Label(16);

/// Returns the label that a path follows, by its number.
#[must_use]
pub fn via_label_of(number: u32) -> Option<Label> {
    Some(Label(number)).filter(|label| (FIRST_FREE..=MAX_LABEL).contains(label))
}

/// Returns the name of a label, or its number.
pub fn label_text(label: Label) -> String {
    let named = LABEL_NAMES.iter().find(|(_, l)| *l == label);
    named.map_or_else(|| label.to_string(), |(name, _)| (*name).to_owned())
}

/// Takes a label.
///
/// # Errors
/// If there is none.
pub fn label_arg(args: &mut Args<'_>) -> Result<Label, CliError> {
    args.with("label", "a number up to 1048575, or a name such as `implicit-null'", label_of)
}

/// Takes one label or more, the outermost first, each perhaps with its TTL and class, and perhaps
/// the mode.
///
/// # Errors
/// If there are none, or too many.
pub fn labels_arg(args: &mut Args<'_>) -> Result<Labels, CliError> {
    let (mut all, mut marks) = (vec![label_arg(args)?], Vec::new());
    loop {
        let mut mark = Mark::USUAL;
        if args.exact("ttl") {
            mark.ttl = args.number("ttl", 1, u64::from(u8::MAX))? as u8;
        }
        if args.exact("exp") {
            mark.class = args.number("exp", 0, 7)? as u8;
        }
        marks.push(mark);
        let Some(label) = args.peek().and_then(label_of) else { break };
        all.push(label);
        args.word("label")?;
    }
    let n = all.len();
    let labels = Labels::new(&all).map(|labels| labels.marked(&marks)).ok_or_else(|| {
        CliError::failed(format_args!("{n} labels: a path takes up to {MAX_LABELS}"))
    })?;
    Ok(match args.one_of_exact(&["uniform", "pipe"]) {
        Some("uniform") => labels.in_mode(Mode::Uniform),
        _ => labels,
    })
}

/// Reads labels as [`labels_text`] writes them, behind `out-labels`; stops at another word.
pub fn labels_of<'a>(words: &mut Peekable<impl Iterator<Item = &'a str>>) -> Option<Labels> {
    let (mut all, mut marks) = (vec![label_of(words.next()?)?], Vec::new());
    loop {
        let mut mark = Mark::USUAL;
        if words.next_if(|w| *w == "ttl").is_some() {
            mark.ttl = words.next()?.parse().ok().filter(|ttl| *ttl > 0)?;
        }
        if words.next_if(|w| *w == "exp").is_some() {
            mark.class = words.next()?.parse().ok().filter(|class| *class < 8)?;
        }
        marks.push(mark);
        let Some(label) = words.peek().and_then(|w| label_of(w)) else { break };
        all.push(label);
        words.next();
    }
    let labels = Labels::new(&all)?.marked(&marks);
    Some(match words.next_if(|w| *w == "uniform") {
        Some(_) => labels.in_mode(Mode::Uniform),
        None => labels,
    })
}

/// Returns the labels of a path as they are typed: ` out-labels 16 17 ttl 9 exp 5`, perhaps with
/// the mode, or nothing.
pub fn labels_text(labels: &Labels) -> String {
    match labels.as_slice() {
        [] => String::new(),
        _ => {
            let one = |(label, mark): (Label, Mark)| {
                let ttl = if mark.ttl == 0 { String::new() } else { format!(" ttl {}", mark.ttl) };
                let class = match mark.class {
                    0 => String::new(),
                    class => format!(" exp {class}"),
                };
                format!(" {}{ttl}{class}", label_text(label))
            };
            let text: String = labels.iter().map(one).collect();
            let text = format!(" out-labels{text}");
            if labels.mode() == Mode::Uniform { text + " uniform" } else { text }
        }
    }
}

/// Takes the arguments after `via` of a path that is not an IP route's.
///
/// # Errors
/// If they are no path.
pub fn path_arg(c: &Control, args: &mut Args<'_>) -> Result<Path, CliError> {
    path(c, args, None)
}

/// Takes the arguments after `via`.
fn path(c: &Control, args: &mut Args<'_>, prefix: Option<(IpAddr, u8)>) -> Result<Path, CliError> {
    if let Some(kind) = special(args) {
        return Ok(Path::special(kind));
    }
    if let Some(table) = lookup_table(args, prefix)? {
        return Ok(Path::special(PathKind::Lookup(table)));
    }
    if args.exact("rx-ip4") || args.exact("rx-ip6") {
        let sw_if = Some(interface_arg(c, args)?);
        return Ok(Path { sw_if, ..Path::special(PathKind::InterfaceRx) });
    }
    let Some(word) = args.peek().filter(|w| !KEYWORDS.contains(w)) else {
        return Err(args.bad("path", "a next hop, an interface, or a word such as `drop'"));
    };
    if args.exact("via-label") {
        let numbers = (u64::from(FIRST_FREE.get()), u64::from(MAX_LABEL.get()));
        let label = args.number("label", numbers.0, numbers.1)? as u32;
        return share_args(args, Path::via_label(Label(label)));
    }
    let mut path = match args.maybe(|a| address_arg(c, a, "next hop")) {
        Some(next_hop) => {
            let more = args.peek().is_some_and(|w| !KEYWORDS.contains(&w));
            let place = "word after the next hop";
            let sw_if = more.then(|| interface_or(c, args, place, &AFTER_HOP)).transpose()?;
            Path::via(next_hop, sw_if)
        }
        // A bare number would pass as an interface index, but is more likely a typing error.
        None if word.parse::<u32>().is_ok() => {
            return Err(args.bad("path", "a next hop such as 192.0.2.1, or an interface's name"));
        }
        None if args.at_address() => Path::via(address_arg(c, args, "next hop")?, None),
        None => Path::connected(interface_arg(c, args)?),
    };
    if path.sw_if.is_none() && args.exact("next-hop-table") {
        path.table = Some(table_arg(args)?);
    }
    share_args(args, path)
}

/// Takes the share of a path, and its labels.
fn share_args(args: &mut Args<'_>, mut path: Path) -> Result<Path, CliError> {
    loop {
        if args.exact("weight") {
            path.weight = args.number("weight", 1, u64::from(u8::MAX))? as u8;
        } else if args.exact("preference") {
            path.preference = args.number("preference", 0, u64::from(u8::MAX))? as u8;
        } else if args.exact("out-labels") {
            path.labels = labels_arg(args)?;
        } else {
            return Ok(path);
        }
    }
}

/// Completions of a route.
pub(crate) fn complete_route(c: &Control, before: &[&str]) -> Vec<String> {
    let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let specials = || SPECIAL[..4].iter().map(|(w, _)| (*w).to_owned());
    match before {
        [] => words(&["add", "del", "replace"]),
        [_] => words(&["table", "count"]),
        [.., "table" | "count" | "weight" | "preference" | "next-hop-table"] => Vec::new(),
        [.., "ip4-lookup-in-table" | "ip6-lookup-in-table" | "via-label"] => Vec::new(),
        [.., "rx-ip4" | "rx-ip6"] => interface_names(c),
        [.., "via"] => {
            let more = words(&["ip4-lookup-in-table", "rx-ip4", "via-label"]);
            interface_names(c).into_iter().chain(specials()).chain(more).collect()
        }
        [.., "via", hop] if hop.parse::<IpAddr>().is_ok() => {
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
        PathKind::InterfaceRx => "interface-rx",
        PathKind::Group(_) => "group",
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
