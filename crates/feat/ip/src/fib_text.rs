//! Routes as text and as JSON, in the structure that VPP prints.

use crate::family::Version;
use crate::{Ip, Path, RouteView, Source, address};
use serde_json::{Value, json};
use std::fmt::Write;
use thalweg_fib::rib::Labels;
use thalweg_fib::{Combined, Dpo, Forwarding, Kind, Member, PathText, Place, TableId};
use thalweg_graph::Control;
use thalweg_tables::Address;

/// Level of detail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detail {
    /// Forwarding object only.
    Brief,
    /// Sources and configured paths, too.
    Full,
}

/// Maximum depth of nested load balances shown.
const MAX_DEPTH: usize = 4;

pub(crate) fn heading<A: Address>(ip: &Ip<A>, table: TableId) -> String {
    let users =
        ip.addresses.keys().filter(|i| ip.table_of(**i) == table && !ip.addresses(**i).is_empty());
    let mut locks = String::new();
    match users.count() {
        0 => {}
        n => _ = write!(locks, "interface:{n}, "),
    }
    locks.push_str(if table == TableId(0) { "default-route:1, " } else { "CLI:1, " });
    format!(
        "{}, fib_index:{table}, flow hash:[src dst sport dport proto ] epoch:0 flags:none \
         locks:[{locks}]",
        Version::of::<A>().table_name(table)
    )
}

/// Text of a route, one line or more.
pub(crate) fn route<A: Address>(
    c: &Control,
    table: TableId,
    view: &RouteView<A>,
    detail: Detail,
) -> String {
    let (mut out, proto) = (String::new(), Version::of::<A>().protocol());
    // Writing to a string cannot fail.
    let _ = match detail {
        Detail::Brief => writeln!(out, "{}\n  unicast-{proto}-chain", view.prefix),
        Detail::Full => sources(c, table, view, &mut out),
    };
    let local = local(c, table, view);
    chain(c, (proto, view.dpo), &local, 1, &mut out);
    out
}

fn sources<A: Address>(
    c: &Control,
    table: TableId,
    view: &RouteView<A>,
    out: &mut String,
) -> std::fmt::Result {
    let (n, dpo) = (view.sources.len(), view.dpo);
    writeln!(out, "{} fib:{table} index:{dpo} locks:{n}", view.prefix)?;
    for (i, source) in view.sources.iter().enumerate() {
        let flags = if i == 0 { "added,contributing,active," } else { "added," };
        writeln!(out, "  {} refs:1 src-flags:{flags}", source.word())?;
        if i == 0 {
            writeln!(out, "    path-list:[{dpo}] locks:1 len:{}", view.paths.len())?;
            for (p, why) in view.paths.iter().zip(unresolved(c, table, view)) {
                path::<A>(c, p, why, out)?;
            }
        }
    }
    writeln!(out, " forwarding:   unicast-{}-chain", Version::of::<A>().protocol())
}

/// Returns the reasons why paths of a route lead nowhere.
fn unresolved<A: Address>(c: &Control, table: TableId, view: &RouteView<A>) -> Vec<Option<String>> {
    c.state::<Ip<A>>().borrow().unresolved(c, table, view)
}

/// Text of a configured path.
fn path<A: Address>(
    c: &Control,
    p: &Path,
    unresolved: Option<String>,
    out: &mut String,
) -> std::fmt::Result {
    let written = PathText::of(p, Version::of::<A>()).map(|i| c.interface_name(i));
    let oper = if unresolved.is_some() { "drop," } else { "resolved," };
    writeln!(
        out,
        "      path: {} weight={} pref={} {}: oper-flags:{oper}",
        Version::of::<A>().protocol(),
        p.weight,
        p.preference,
        written.place.listed()
    )?;
    match (&written.place, p.sw_if) {
        (Place::NextHop { address, interface: None, table }, _) => {
            let table = table.map_or_else(String::new, |id| format!(" fib:{id}"));
            writeln!(out, "        via {address}{table}")
        }
        (end @ Place::End(_), Some(i)) => writeln!(out, "        {end} {}", c.interface_name(i)),
        (place, _) => writeln!(out, "        {place}"),
    }?;
    if p.labels != Labels::NONE {
        writeln!(out, "        {}", p.labels.listed())?;
    }
    match unresolved {
        Some(why) => writeln!(out, "        unresolved: {why}"),
        None => Ok(()),
    }
}

/// Text of a local route: the interface that has the address.
fn local<A: Address>(c: &Control, table: TableId, view: &RouteView<A>) -> String {
    if view.source != Source::Interface || view.prefix.len() != A::BITS {
        return String::new();
    }
    let (addr, ip) = (view.prefix.addr(), c.state::<Ip<A>>());
    let owner = address::owner(&ip.borrow(), table, addr);
    let on = |i| format!(": {} on {}", addr.to_ip(), c.interface_name(i));
    owner.map_or_else(String::new, on)
}

/// Members of a load balance, the only member of a group in the place of that; the entry itself for
/// anything else.
fn members(f: &Forwarding, dpo: Dpo) -> Vec<Member> {
    let mut members = f.members(dpo);
    for member in &mut members {
        while let [only] = f.members(member.dpo)[..]
            && only.dpo != member.dpo
        {
            member.dpo = only.dpo;
        }
    }
    members
}

fn chain(c: &Control, (proto, dpo): (&str, Dpo), local: &str, depth: usize, out: &mut String) {
    let f = c.state::<Forwarding>();
    let f = f.borrow();
    let ends = members(&f, dpo);
    let indent = "  ".repeat(depth);
    let at = if depth == 1 { format!("{indent}[@0]: ") } else { String::new() };
    let n = ends.len();
    let counts = f.counting().then(|| f.counts(dpo));
    let to = counts.map_or_else(String::new, |c| format!(" to:{}", counted(c.to)));
    let _ = writeln!(out, "{at}dpo-load-balance: [proto:{proto} index:{dpo} buckets:{n}{to}]");
    for (i, Member { dpo: end, weight, .. }) in ends.iter().enumerate() {
        let weight = if n > 1 { format!(" weight:{weight}") } else { String::new() };
        let kind = f.table().get(*end).state().kind;
        let _ = write!(out, "{indent}  [{i}] [@{}]: ", f.kind(kind).type_number);
        if f.is_group(*end) && depth < MAX_DEPTH {
            // The load balance is on the same line; its members are indented further.
            chain(c, (proto, *end), "", depth + 2, out);
            continue;
        }
        let text = f.describe(c, *end);
        let local = if kind == Kind::LOCAL { local } else { "" };
        let counts = f.counting() && kind.is_sent();
        let via =
            if counts { format!(" via:{}", counted(f.counts(*end).via)) } else { String::new() };
        let _ = writeln!(out, "{}{local}{weight}{via}", text.trim_end());
    }
}

/// Packets and bytes, as VPP prints them.
fn counted(counts: Combined) -> String {
    format!("[{}:{}]", counts.packets, counts.bytes)
}

fn counted_json(counts: Combined) -> Value {
    json!({ "packets": counts.packets, "bytes": counts.bytes })
}

pub(crate) fn route_json<A: Address>(c: &Control, table: TableId, view: &RouteView<A>) -> Value {
    let path = |(p, why): (&Path, Option<String>)| {
        let named = PathText::of(p, Version::of::<A>()).map(|i| c.interface_name(i));
        let mut path = named.json();
        path["kind"] = p.kind.word().into();
        // Routes of the router's own addresses have an interface, too.
        path["interface"] = p.sw_if.map(|i| c.interface_name(i)).into();
        if let Some(why) = why {
            path["unresolved"] = why.into();
        }
        path
    };
    let paths: Vec<Value> = view.paths.iter().zip(unresolved(c, table, view)).map(path).collect();
    let f = c.state::<Forwarding>();
    let f = f.borrow();
    let counts = f.counting().then(|| f.counts(view.dpo));
    let mut route = json!({
        "prefix": view.prefix.to_string(),
        "table": table.0,
        "source": view.source.word(),
        "sources": view.sources.iter().map(|s| s.word()).collect::<Vec<_>>(),
        "paths": paths,
        "forwarding": ends_json(c, view.dpo, 0),
    });
    if let Some(counts) = counts {
        route["to"] = counted_json(counts.to);
    }
    route
}

fn ends_json(c: &Control, dpo: Dpo, depth: usize) -> Value {
    let f = c.state::<Forwarding>();
    let f = f.borrow();
    let one = |Member { dpo: end, weight, .. }: &Member| {
        let (s, bytes) = f.table().rewrite(*end);
        if f.is_group(*end) && depth < MAX_DEPTH {
            return json!({ "weight": weight, "members": ends_json(c, *end, depth + 1) });
        }
        let (sw_if, via) = f.owner(*end).map_or((None, None), |(i, ip)| (Some(i), ip));
        let complete = s.kind.is_complete() && s.len > 0;
        let mut member = json!({
            "weight": weight,
            "kind": f.kind(s.kind).name,
            "via": via,
            "interface": sw_if.map(|i| c.interface_name(i)),
            "mtu": sw_if.map(|_| s.mtu),
            "rewrite": complete.then(|| hex(&bytes)),
        });
        if f.counting() && s.kind.is_sent() {
            member["sent"] = counted_json(f.counts(*end).via);
        }
        member
    };
    members(&f, dpo).iter().map(one).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
