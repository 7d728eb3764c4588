//! Configuration of a version of IP: addresses, tables, routes.

use crate::address::AddressError;
use crate::cli_args::{kind_word, special_kind};
use crate::family::{Family, IfAddress, Version, for_version};
use crate::path_mtu::{self, LARGEST};
use crate::redirect::{self, RedirectError};
use crate::subnets::Subnets;
use crate::{Ip, Path, PathKind, address, labels_of, labels_text, via_label_of};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use thalweg_config::declare::schema::MAX_ADDRESSES;
use thalweg_config::declare::{
    Doc, Draft, Dump, Found, Interface, Item, Kind, Later, Name, Node, Problem, Rule, Section,
    Value, Walk, address as parse_address, interface_key, rank,
};
use thalweg_device::interface::InterfaceView;
use thalweg_device::{Interfaces, SwIfIndex};
use thalweg_fib::TableId;
use thalweg_fib::rib::Labels;
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix, Sweep};
use thalweg_wire::mpls::Label;

/// Section of a version's addresses, tables and routes, for the feature of its protocol.
pub struct Settings<A: Address>(pub &'static dyn Family<A>);

const TABLE: Kind = Kind::Int(0, u32::MAX as i128);

const ADDRESSES: [Rule; 2] = [
    Rule::new("thalweg.interfaces.*.addresses", Kind::List(0, usize::MAX)),
    Rule::new("thalweg.interfaces.*.addresses.[]", Kind::Address),
];
const ID: Kind = Kind::Named(Name::Number(0, u32::MAX as u64));

const RULES: &[Rule] = &[
    Rule::new("thalweg.interfaces.*.unnumbered", Kind::Name(Name::Any)),
    ADDRESSES[0],
    ADDRESSES[1],
    Rule::new("thalweg.interfaces.*.ip-table", TABLE),
    Rule::new("thalweg.interfaces.*.ip4-enabled", Kind::Bool),
    Rule::new("thalweg.ip-tables", ID),
    Rule::new("thalweg.ip-tables.*", Kind::Keys),
    Rule::new("thalweg.ip-tables.*.name", Kind::Other(table_name)),
    Rule::new("thalweg.ip-tables.*.unreachables", Kind::Bool),
    Rule::new("thalweg.ip-tables.*.routes", Kind::Named(Name::Any)),
    Rule::new("thalweg.ip-tables.*.routes.*", Kind::Other(route)),
    Rule::new("thalweg.ip-tables.*.path-mtus", Kind::Named(Name::Any)),
    Rule::new("thalweg.ip-tables.*.path-mtus.*", Kind::Int(68, LARGEST as i128)),
    Rule::new("thalweg.ip-punt-redirects", Kind::Named(Name::Any)),
    Rule::new("thalweg.ip-punt-redirects.*", Kind::Other(route)),
];

const RULES_6: &[Rule] = &[
    ADDRESSES[0],
    ADDRESSES[1],
    Rule::new("thalweg.interfaces.*.ip6-table", TABLE),
    Rule::new("thalweg.interfaces.*.ip6-enabled", Kind::Bool),
    Rule::new("thalweg.ip6-tables", ID),
    Rule::new("thalweg.ip6-tables.*", Kind::Keys),
    Rule::new("thalweg.ip6-tables.*.name", Kind::Other(table_name)),
    Rule::new("thalweg.ip6-tables.*.unreachables", Kind::Bool),
    Rule::new("thalweg.ip6-tables.*.routes", Kind::Named(Name::Any)),
    Rule::new("thalweg.ip6-tables.*.routes.*", Kind::Other(route)),
    Rule::new("thalweg.ip6-tables.*.path-mtus", Kind::Named(Name::Any)),
    Rule::new("thalweg.ip6-tables.*.path-mtus.*", Kind::Int(1280, LARGEST as i128)),
    Rule::new("thalweg.ip6-punt-redirects", Kind::Named(Name::Any)),
    Rule::new("thalweg.ip6-punt-redirects.*", Kind::Other(route)),
];

fn table_name(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) => crate::check_table_name(text),
        _ => Err("the name of a table".into()),
    }
}

/// Keys of a version's settings.
struct Keys {
    /// An interface's table.
    table: &'static str,
    /// The tables.
    tables: &'static str,
    /// Redirects of punted packets.
    redirects: &'static str,
    /// Whether an interface speaks the version without an address.
    enabled: &'static str,
    /// Begins the keys of items.
    item: &'static str,
    /// A prefix as an example.
    prefix: &'static str,
}

const fn keys<A: Address>() -> Keys {
    match Version::of::<A>() {
        Version::V4 => Keys {
            table: "ip-table",
            tables: "ip-tables",
            redirects: "ip-punt-redirects",
            enabled: "ip4-enabled",
            item: "",
            prefix: "192.0.2.0/24",
        },
        Version::V6 => Keys {
            table: "ip6-table",
            tables: "ip6-tables",
            redirects: "ip6-punt-redirects",
            enabled: "ip6-enabled",
            item: "ip6 ",
            prefix: "2001:db8::/32",
        },
    }
}

/// A path in a document, written as in `ip route`: `192.0.2.1 host-eth0 weight 2
/// preference 1`, `192.0.2.1 next-hop-table 7`, `host-eth0`, `drop`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Via<'a> {
    kind: PathKind,
    next_hop: Option<IpAddr>,
    interface: Option<&'a str>,
    via_label: Option<Label>,
    table: Option<TableId>,
    weight: u8,
    preference: u8,
    labels: Labels,
}

/// Words that end a next hop.
const ENDS: [&str; 4] = ["weight", "preference", "next-hop-table", "out-labels"];

impl<'a> Via<'a> {
    fn parse(text: &'a str) -> Option<Via<'a>> {
        let mut words = text.split_whitespace().peekable();
        let first = words.next()?;
        let kind = special_kind(first).unwrap_or(PathKind::Normal);
        let (weight, preference) = (1, 0);
        let (next_hop, interface, table, labels) = (None, None, None, Labels::NONE);
        let via_label = None;
        let mut via =
            Via { kind, next_hop, interface, via_label, table, weight, preference, labels };
        if first == "lookup" {
            let id = words.next_if_eq(&"in").and_then(|_| words.next_if_eq(&"table"));
            let id = id.and_then(|_| words.next()?.parse().ok())?;
            via.kind = PathKind::Lookup(TableId(id));
            return words.next().is_none().then_some(via);
        }
        if first == "rx-ip4" || first == "rx-ip6" {
            (via.kind, via.interface) = (PathKind::InterfaceRx, Some(words.next()?));
            return words.next().is_none().then_some(via);
        }
        if kind != PathKind::Normal {
            return words.next().is_none().then_some(via);
        }
        match first.parse() {
            Ok(next_hop) => {
                via.next_hop = Some(next_hop);
                via.interface = words.next_if(|w| !ENDS.contains(w));
                if via.interface.is_none() && words.next_if_eq(&"next-hop-table").is_some() {
                    via.table = Some(words.next()?.parse().ok()?);
                }
            }
            Err(_) if first == "via-label" => {
                via.via_label = Some(via_label_of(words.next()?.parse().ok()?)?);
            }
            Err(_) if first.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                via.interface = Some(first);
            }
            Err(_) => return None,
        }
        while let Some(word) = words.next() {
            match word {
                "weight" => via.weight = words.next()?.parse().ok().filter(|w| *w > 0)?,
                "preference" => via.preference = words.next()?.parse().ok()?,
                "out-labels" => via.labels = labels_of(&mut words)?,
                _ => return None,
            }
        }
        Some(via)
    }

    fn write<A: Address>(names: &HashMap<SwIfIndex, String>, path: &Path) -> String {
        let hop = path.next_hop.map(|h| h.to_string());
        let hop = hop.or(path.via_label.map(|label| format!("via-label {label}")));
        let interface = path.sw_if.and_then(|i| names.get(&i).cloned());
        match path.kind {
            PathKind::Normal => {}
            PathKind::Lookup(id) => return format!("lookup in table {id}"),
            PathKind::InterfaceRx => {
                return format!("{} {}", rx_word::<A>(), interface.unwrap_or_default());
            }
            kind => return kind_word(kind).to_owned(),
        }
        let table = path.table.map(|id| format!("next-hop-table {id}"));
        let weight = (path.weight != 1).then(|| format!("weight {}", path.weight));
        let preference = (path.preference != 0).then(|| format!("preference {}", path.preference));
        let share = weight.into_iter().chain(preference);
        let words = hop.into_iter().chain(interface).chain(table).chain(share);
        words.collect::<Vec<_>>().join(" ") + &labels_text(&path.labels)
    }
}

/// Word of a path that takes packets as received on an interface.
fn rx_word<A: Address>() -> &'static str {
    match Version::of::<A>() {
        Version::V4 => "rx-ip4",
        Version::V6 => "rx-ip6",
    }
}

fn vias(value: &Value) -> Option<Vec<Via<'_>>> {
    match value {
        Value::Text(text) => Some(vec![Via::parse(text)?]),
        Value::List(list) => {
            let all: Option<Vec<Via<'_>>> = list.iter().map(|n| Via::parse(n.text()?)).collect();
            let alone = |v: &Via<'_>| v.kind == PathKind::Normal;
            all.filter(|a| !a.is_empty() && (a.len() == 1 || a.iter().all(alone)))
        }
        _ => None,
    }
}

fn route(value: &Value) -> Result<(), String> {
    let expected = "a path or a list of paths: `<next hop> [<interface> | next-hop-table <id>] \
                    [weight <n>] [preference <n>] [out-labels <label> ... [uniform]]', `<interface>', `via-label <label> ...', `lookup in table <id>', `rx-ip4 <interface>', or drop, local, unreachable, prohibit,";
    vias(value).map(|_| ()).ok_or_else(|| expected.into())
}

impl<A: Address> Section<Control> for Settings<A> {
    fn supports(&self) -> &'static [&'static str] {
        &[
            "interfaces.*.addresses.[]",
            "interfaces.*.unnumbered",
            "loopbacks.*.addresses.[]",
            "loopbacks.*.unnumbered",
        ]
    }

    fn rules(&self) -> &'static [Rule] {
        match Version::of::<A>() {
            Version::V4 => RULES,
            Version::V6 => RULES_6,
        }
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let (ip, keys) = (c.state::<Ip<A>>(), keys::<A>());
        let ip = ip.borrow();
        let all: Vec<SwIfIndex> =
            c.state::<Interfaces>().borrow().iter().map(|v| v.sw_if).collect();
        for sw_if in all {
            let name = c.interface_name(sw_if);
            let table = ip.table_of(sw_if);
            if table != TableId(0) {
                out.set(&name, keys.table, table.0);
            }
            if ip.is_configured(sw_if) {
                out.set(&name, keys.enabled, true);
            }
            let chosen = ip.addresses(sw_if).iter().filter(|a| !ip.is_found(sw_if, **a));
            for address in chosen.chain(&self.0.link_addresses(c, sw_if)) {
                out.add(&name, "addresses", MAX_ADDRESSES, address.to_string());
            }
            // As the versions borrow together, one has the setting.
            if let Some(lender) = ip.lender(sw_if).filter(|_| Version::of::<A>() == Version::V4) {
                out.set(&name, "unnumbered", c.interface_name(lender));
            }
        }
        for table in ip.table_ids().into_iter().filter(|t| *t != TableId(0)) {
            let id = table.to_string();
            out.put(&["thalweg", keys.tables, &id], Value::Map(Default::default()));
        }
        for table in ip.answering() {
            out.put(&["thalweg", keys.tables, &table.to_string(), "unreachables"], true);
        }
        for (table, name) in ip.table_names() {
            out.put(&["thalweg", keys.tables, &table.to_string(), "name"], name);
        }
        drop(ip);
        for ((table, address), mtu) in path_mtu::all::<A>(c) {
            let (id, address) = (table.to_string(), address.to_ip().to_string());
            out.put(&["thalweg", keys.tables, &id, "path-mtus", &address], u32::from(mtu));
        }
        let redirects = redirect::all::<A>(c);
        if !redirects.is_empty() {
            let names = names(c);
            for (rx_if, paths, _) in redirects {
                let rx = redirect::rx_name(c, rx_if);
                out.put(&["thalweg", keys.redirects, &rx], written::<A>(&names, &paths));
            }
        }
    }

    fn walk(&self, c: &Control) -> Option<Walk<Control>> {
        let mut tables = c.state::<Ip<A>>().borrow().table_ids();
        tables.reverse();
        let (mut at, mut routes, mut all) = (Sweep::default(), Vec::new(), Vec::new());
        Some(Box::new(move |c| {
            if let Some(table) = tables.last() {
                let ip = c.state::<Ip<A>>();
                if !ip.borrow().sweep_configured(*table, &mut at, &mut routes) {
                    all.push((*table, std::mem::take(&mut routes)));
                    at = Sweep::default();
                    tables.pop();
                }
                return None;
            }
            let names = names(c);
            let all = std::mem::take(&mut all);
            Some(Box::new(move |out: &mut Dump<'_>| write_routes(all, &names, out)) as Later)
        }))
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        out.reads(Version::of::<A>().name());
        let mut tables: Vec<TableId> = vec![TableId(0)];
        let word = Version::of::<A>().word();
        for (id, found) in doc.entries(&["thalweg", keys::<A>().tables]) {
            let of_table = |item: Item| match id.parse() {
                Ok(0) | Err(_) => item,
                Ok(id) => item.needs(table_key::<A>(TableId(id))),
            };
            if let Some(name) = found.node.get("name").and_then(Node::text) {
                let set = |name: &str| format!("{word} table add {id} name '{name}'");
                let key = format!("name of {word} table {id}");
                let item = Item::new(rank::TABLE, key, format!("{}.name", found.path), set(name));
                let item = item.unset(set("")).attribute().order(1);
                out.add(of_table(item));
            }
            if found.node.get("unreachables").and_then(Node::bool) == Some(true) {
                let set = |switch| format!("{word} table unreachables {id} {switch}");
                let key = format!("unreachables of {word} table {id}");
                let path = format!("{}.unreachables", found.path);
                let item = Item::new(rank::TABLE, key, path, set("on"));
                let item = item.unset(set("off")).attribute().order(1);
                out.add(of_table(item));
            }
            path_mtus::<A>(doc, id, &of_table, out);
            let Some(id) = id.parse().ok().filter(|id: &u32| *id != 0) else { continue };
            tables.push(TableId(id));
            let (key, add) = (table_key::<A>(TableId(id)), format!("{word} table add {id}"));
            let item = Item::new(rank::TABLE, key, found.path, add);
            out.add(item.unset(format!("{word} table del {id}")).recreate());
        }
        let mut subnets: BTreeMap<TableId, Subnets<A, Subnet<A>>> = BTreeMap::new();
        for i in doc.interfaces() {
            if Version::of::<A>() == Version::V4 {
                unnumbered(doc, i, out);
            }
            let table = bind::<A>(i, &tables, out);
            enable::<A>(i, out);
            for found in i.list("addresses") {
                if !i.takes_addresses() {
                    let text = AddressError::NotExact.to_string();
                    out.problem(Problem::at(found.node, found.path, text));
                    break;
                }
                if let Some(subnet) = one_address(self.0, i, table, &found, out) {
                    let others = subnets.entry(table).or_default();
                    match others.meeting(subnet.prefix) {
                        None => others.insert(subnet.prefix, subnet),
                        Some((_, other)) => overlap(&subnet, other, &found, out),
                    }
                }
            }
        }
        for table in tables {
            let connected = subnets.remove(&table).unwrap_or_default();
            routes(doc, table, &connected, out);
        }
        redirects::<A>(doc, out);
    }
}

/// Path MTUs of a table.
fn path_mtus<A: Address>(
    doc: &Doc<'_>,
    id: &str,
    of_table: &impl Fn(Item) -> Item,
    out: &mut Draft,
) {
    let in_table = if id == "0" { String::new() } else { format!(" table {id}") };
    for (text, found) in doc.entries(&["thalweg", keys::<A>().tables, id, "path-mtus"]) {
        let Some(address) = text.parse().ok().filter(|ip| A::from_ip(*ip).is_some()) else {
            let name = Version::of::<A>().name();
            let text = format!("an {name} address expected, not `{text}'");
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        };
        let Some(mtu) = found.node.u32() else { continue };
        let set = format!("set ip pmtu {address} {mtu}{in_table}");
        let item =
            Item::new(rank::ROUTE, format!("path mtu of {address}{in_table}"), found.path, set);
        out.add(of_table(item.unset(format!("set ip pmtu del {address}{in_table}"))));
    }
}

/// Redirects of punted packets, by the interface that receives them.
fn redirects<A: Address>(doc: &Doc<'_>, out: &mut Draft) {
    // The router's own interface exists without being named.
    let names: HashSet<&str> =
        doc.interfaces().iter().map(|i| &*i.name).chain(["local0"]).collect();
    let word = Version::of::<A>().word();
    for (rx, found) in doc.entries(&["thalweg", keys::<A>().redirects]) {
        // The schema has checked it.
        let Some(vias) = vias(&found.node.value) else { continue };
        let named = vias.iter().filter_map(|v| v.interface);
        let mut all = named.clone().chain((rx != "all").then_some(rx));
        if let Some(name) = all.find(|name| !names.contains(name)) {
            let text = format!("there is no interface `{name}' in this document");
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        }
        if vias.iter().any(|v| !matches!(v.kind, PathKind::Normal | PathKind::Lookup(_))) {
            let text = RedirectError::NoPath.to_string();
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        }
        let mut paths: Vec<String> = vias.iter().map(command::<A>).collect();
        paths.sort_unstable();
        let set = format!("{word} punt redirect add rx {rx}{}", paths.concat());
        let key = format!("{word} punt redirect of {rx}");
        let mut item = Item::new(rank::ROUTE, key, &found.path, set)
            .unset(format!("{word} punt redirect del rx {rx}"))
            .order(2 * DEPTH);
        for via in &vias {
            let table = match via.kind {
                PathKind::Lookup(id) => Some(id),
                _ => via.table,
            };
            if let Some(id) = table.filter(|id| *id != TableId(0)) {
                item = item.needs(table_key::<A>(id));
            }
        }
        for name in named.chain((rx != "all").then_some(rx)) {
            item = item.needs(interface_key(name));
        }
        out.add(item);
    }
}

/// Routes of tables, as collected by a walk.
type Tables<A> = Vec<(TableId, Vec<(Prefix<A>, Vec<Path>)>)>;

/// Names of all interfaces.
fn names(c: &Control) -> HashMap<SwIfIndex, String> {
    let view = |v: &InterfaceView| (v.sw_if, v.name.clone());
    c.state::<Interfaces>().borrow().iter().map(view).collect()
}

/// Paths as a document has them.
fn written<A: Address>(names: &HashMap<SwIfIndex, String>, paths: &[Path]) -> Value {
    match paths {
        [one] => Value::Text(Via::write::<A>(names, one)),
        many => Value::List(many.iter().map(|p| Via::write::<A>(names, p).into()).collect()),
    }
}

fn write_routes<A: Address>(
    all: Tables<A>,
    names: &HashMap<SwIfIndex, String>,
    out: &mut Dump<'_>,
) {
    for (table, mut routes) in all {
        let id = table.to_string();
        routes.sort_by_key(|r| r.0);
        routes.dedup_by_key(|r| r.0);
        let written = |(prefix, paths): (Prefix<A>, Vec<Path>)| {
            (prefix.to_string(), Node::from(written::<A>(names, &paths)))
        };
        if !routes.is_empty() {
            let map = routes.into_iter().map(written).collect();
            out.put(&["thalweg", keys::<A>().tables, &id, "routes"], Value::Map(map));
        }
    }
}

fn table_key<A: Address>(id: TableId) -> String {
    format!("{} {id}", keys::<A>().table)
}

fn bind_key<A: Address>(interface: &str) -> String {
    format!("{} of {interface}", keys::<A>().table)
}

/// Binds an interface to its table; returns the table id.
fn bind<A: Address>(i: &Interface<'_>, tables: &[TableId], out: &mut Draft) -> TableId {
    let keys = keys::<A>();
    let Some(found) = i.get(keys.table) else { return TableId(0) };
    let Some(table) = found.node.u32().map(TableId).filter(|t| *t != TableId(0)) else {
        return TableId(0);
    };
    if !tables.contains(&table) {
        let key = keys.tables;
        let text = format!("there is no table {table}; `thalweg.{key}.{table}: {{}}' makes it");
        out.problem(Problem::at(found.node, found.path, text));
        return table;
    }
    let word = Version::of::<A>().word();
    let set = |id: TableId| format!("set interface {word} table {} {id}", i.name);
    let item = Item::new(rank::BIND, bind_key::<A>(&i.name), found.path, set(table))
        .unset(set(TableId(0)));
    out.add(item.needs(interface_key(&i.name)).needs(table_key::<A>(table)));
    table
}

fn unnumbered(doc: &Doc<'_>, i: &Interface<'_>, out: &mut Draft) {
    let Some(found) = i.get("unnumbered") else { return };
    let Some(lender) = found.node.text() else { return };
    let wrong = match lender {
        own if own == i.name => Some("another interface expected"),
        "local0" => None,
        other if doc.interface(other).is_none() => Some("an interface of this document expected"),
        _ => None,
    };
    if let Some(wrong) = wrong {
        out.problem(Problem::at(found.node, found.path, format!("{wrong}, not `{lender}'")));
        return;
    }
    let set = format!("set interface unnumbered {} use {lender}", i.name);
    let item = Item::new(rank::ADDRESS, format!("unnumbered {}", i.name), found.path, set)
        .unset(format!("set interface unnumbered del {}", i.name));
    out.add(item.needs(interface_key(&i.name)).needs(interface_key(lender)));
}

/// Makes an interface speak a version without an address.
fn enable<A: Address>(i: &Interface<'_>, out: &mut Draft) {
    let found = i.get(keys::<A>().enabled).filter(|f| f.node.bool() == Some(true));
    let Some(found) = found else { return };
    let (name, word) = (&*i.name, Version::of::<A>().protocol());
    let key = format!("{word} enabled on {name}");
    let item = Item::new(rank::BIND, key, found.path, format!("enable {word} interface {name}"));
    let item = item.unset(format!("disable {word} interface {name}"));
    out.add(item.needs(interface_key(name)));
}

/// A connected subnet.
struct Subnet<A> {
    prefix: Prefix<A>,
    interface: String,
    text: String,
}

fn one_address<A: Address>(
    family: &dyn Family<A>,
    i: &Interface<'_>,
    table: TableId,
    found: &Found<'_>,
    out: &mut Draft,
) -> Option<Subnet<A>> {
    let (ip, len) = parse_address(found.node.text()?)?;
    let Some(addr) = A::from_ip(ip) else {
        foreign(ip, "address", found, out);
        return None;
    };
    let prefix = match address::check(family, IfAddress { addr, len }) {
        Ok(prefix) => prefix,
        Err(e) => {
            out.problem(Problem::at(found.node, &found.path, e.to_string()));
            return None;
        }
    };
    let name = &*i.name;
    let text = format!("{ip}/{len}");
    let set = format!("set interface ip address {name} {text}");
    let item = Item::new(rank::ADDRESS, format!("address {name} {text}"), &found.path, set)
        .unset(format!("set interface ip address del {name} {text}"));
    let item = item.needs(interface_key(name)).needs(bind_key::<A>(name));
    out.add(if table == TableId(0) { item } else { item.needs(table_key::<A>(table)) });
    // Each link has such addresses of its own.
    let is_routed = !family.is_of_link(addr);
    is_routed.then(|| Subnet { prefix, interface: name.to_owned(), text })
}

/// Reports an address of another version, unless the router has that.
fn foreign(ip: IpAddr, what: &str, found: &Found<'_>, out: &mut Draft) {
    let kind = Version::of_ip(ip).name();
    let what = format!("an {kind} {what}");
    out.unless_read(kind, Problem::unsupported(found.node, &found.path, &what));
}

/// Reports a subnet that meets another, unless both are one interface's.
fn overlap<A: Address>(new: &Subnet<A>, old: &Subnet<A>, found: &Found<'_>, out: &mut Draft) {
    if (&old.interface, old.prefix) != (&new.interface, new.prefix) {
        let text = format!("{} overlaps with {} on `{}'", new.text, old.text, old.interface);
        out.problem(Problem::at(found.node, &found.path, text));
    }
}

fn routes<A: Address>(
    doc: &Doc<'_>,
    table: TableId,
    connected: &Subnets<A, Subnet<A>>,
    out: &mut Draft,
) {
    let (id, keys, name) = (table.to_string(), keys::<A>(), Version::of::<A>().name());
    let mut all: Vec<(Prefix<A>, Vec<Via<'_>>, Found<'_>)> = Vec::new();
    for (text, found) in doc.entries(&["thalweg", keys.tables, &id, "routes"]) {
        let parsed = parse_address(text).and_then(|(ip, len)| Some((A::from_ip(ip)?, len)));
        let Some(prefix) = parsed.and_then(|(addr, len)| Prefix::new(addr, len).ok()) else {
            let such = keys.prefix;
            let text = format!("an {name} prefix such as {such} expected, not `{text}'");
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        };
        // The schema has checked it.
        if let Some(vias) = vias(&found.node.value) {
            all.push((prefix, vias, found));
        }
    }
    let order = Order::new(&all, connected);
    // The router's own interface exists without being named.
    let names: HashSet<&str> =
        doc.interfaces().iter().map(|i| &*i.name).chain(["local0"]).collect();
    for (prefix, vias, found) in &all {
        let is_unknown = |v: &Via<'_>| v.interface.is_some_and(|name| !names.contains(name));
        for (i, via) in vias.iter().enumerate().filter(|(_, v)| is_unknown(v)) {
            let text = format!(
                "there is no interface `{}' in this document",
                via.interface.unwrap_or_default()
            );
            // One path of several is wrong by itself.
            let path = match found.node.list() {
                [] => found.path.clone(),
                _ => format!("{}[{i}]", found.path),
            };
            out.problem(Problem::at(found.node, path, text));
        }
        if vias.iter().any(is_unknown) {
            continue;
        }
        let others = vias.iter().filter_map(|v| v.next_hop).filter(|h| A::from_ip(*h).is_none());
        others.for_each(|hop| foreign(hop, "next hop", found, out));
        let in_table = if table == TableId(0) { String::new() } else { format!(" table {table}") };
        // Their order means nothing.
        let mut paths: Vec<String> = vias.iter().map(command::<A>).collect();
        paths.sort_unstable();
        let paths = paths.concat();
        let set = format!("ip route replace {prefix}{in_table}{paths}");
        let key = format!("{}route {table} {prefix}", keys.item);
        let mut item = Item::new(rank::ROUTE, key, &found.path, set)
            .unset(format!("ip route del {prefix}{in_table}"))
            .order(order.of(*prefix, 0));
        let own = Version::of::<A>();
        let looked = |v: &Via<'_>| match (v.kind, v.next_hop.map(Version::of_ip)) {
            (PathKind::Lookup(id), _) => Some((own, id)),
            (_, Some(version)) if version != own && v.interface.is_none() => {
                Some((version, v.table.unwrap_or(TableId(0))))
            }
            _ => Some((own, v.table?)),
        };
        let others = vias.iter().filter_map(looked).filter(|other| *other != (own, table));
        for (version, id) in others.clone().filter(|other| other.1 != TableId(0)) {
            item = item.needs(for_version!(version, table_key(id)));
        }
        if others.count() > 0 {
            // The routes of the other tables come first.
            item = item.order(2 * DEPTH);
        }
        if table != TableId(0) {
            item = item.needs(table_key::<A>(table));
        }
        for via in vias.iter().filter_map(|v| v.interface) {
            item = item.needs(interface_key(via));
        }
        out.add(item);
    }
}

fn command<A: Address>(via: &Via<'_>) -> String {
    match via.kind {
        PathKind::Normal => {}
        PathKind::Lookup(id) => return format!(" via lookup in table {id}"),
        PathKind::InterfaceRx => {
            return format!(" via {} {}", rx_word::<A>(), via.interface.unwrap_or_default());
        }
        kind => return format!(" via {}", kind_word(kind)),
    }
    let label = via.via_label.map(|label| format!(" via-label {label}"));
    let hop = via.next_hop.map(|h| format!(" {h}")).or(label).unwrap_or_default();
    let interface = via.interface.map(|i| format!(" {i}")).unwrap_or_default();
    let table = via.table.map(|id| format!(" next-hop-table {id}")).unwrap_or_default();
    let preference = match via.preference {
        0 => String::new(),
        n => format!(" preference {n}"),
    };
    let labels = labels_text(&via.labels);
    format!(" via{hop}{interface}{table} weight {}{preference}{labels}", via.weight)
}

/// Order of routes: a next hop must be reachable before it is used.
struct Order<'a, A> {
    routes: HashMap<Prefix<A>, &'a [Via<'a>]>,
    connected: HashSet<Prefix<A>>,
}

/// Maximum depth of recursion that is ordered.
const DEPTH: u32 = 16;

impl<'a, A: Address> Order<'a, A> {
    fn new(
        all: &'a [(Prefix<A>, Vec<Via<'a>>, Found<'a>)],
        connected: &Subnets<A, Subnet<A>>,
    ) -> Order<'a, A> {
        Order {
            routes: all.iter().map(|(p, vias, _)| (*p, vias.as_slice())).collect(),
            connected: connected.iter().collect(),
        }
    }

    /// Number of routes that must precede this one.
    fn of(&self, prefix: Prefix<A>, depth: u32) -> u32 {
        let Some(vias) = self.routes.get(&prefix) else { return 0 };
        let own = vias.iter().filter(|v| v.interface.is_none() && v.table.is_none());
        let recursive = own.filter_map(|v| v.next_hop);
        let above = |hop: A| {
            let covers = (0..=A::BITS).rev().filter_map(|len| Prefix::new(hop, len).ok());
            for cover in covers {
                if self.connected.contains(&cover) {
                    return 0;
                }
                if self.routes.contains_key(&cover) {
                    let goes_on = depth < DEPTH && cover != prefix;
                    return if goes_on { 1 + self.of(cover, depth + 1) } else { 1 };
                }
            }
            0
        };
        recursive.filter_map(A::from_ip).map(above).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_commands_are() {
        let path = |text| Via::parse(text).map(|v| command::<u32>(&v));
        assert_eq!(path("192.0.2.1").as_deref(), Some(" via 192.0.2.1 weight 1"));
        assert_eq!(path("192.0.2.1 pg0 weight 3").as_deref(), Some(" via 192.0.2.1 pg0 weight 3"));
        let in_table = path("192.0.2.1 next-hop-table 7 weight 3");
        assert_eq!(in_table.as_deref(), Some(" via 192.0.2.1 next-hop-table 7 weight 3"));
        let labelled = path("192.0.2.1 pg0 out-labels 17 implicit-null weight 2");
        let want = " via 192.0.2.1 pg0 weight 2 out-labels 17 implicit-null";
        assert_eq!(labelled.as_deref(), Some(want));
        assert_eq!(path("fe80::1 pg0").as_deref(), Some(" via fe80::1 pg0 weight 1"));
        assert_eq!(path("host-eth0").as_deref(), Some(" via host-eth0 weight 1"));
        let followed = path("via-label 33 weight 2 out-labels 44");
        let want = " via via-label 33 weight 2 out-labels 44";
        assert_eq!(followed.as_deref(), Some(want));
        assert_eq!(path("drop").as_deref(), Some(" via drop"));
        let look = path("lookup in table 7");
        assert_eq!(look.as_deref(), Some(" via lookup in table 7"));
        assert_eq!(path("rx-ip4 pg0").as_deref(), Some(" via rx-ip4 pg0"));
        for bad in [
            "",
            "lookup",
            "lookup in table x",
            "lookup in table 7 weight 2",
            "rx-ip4",
            "192.0.2",
            "192.0.2.1 weight",
            "192.0.2.1 next-hop-table",
            "192.0.2.1 pg0 next-hop-table 7",
            "192.0.2.1 next-hop-table x",
            "192.0.2.1 weight 0",
            "192.0.2.1 out-labels",
            "192.0.2.1 out-labels 1048576",
            "drop pg0",
            "via-label",
            "via-label 3",
            "via-label 1048576",
            "via-label 33 next-hop-table 7",
            "via-label 33 pg0",
            "weight 2 pg0 x",
            "192.0.2.1 pg0 weight 256",
            "192.0.2.1 pg0 pg1",
        ] {
            assert_eq!(Via::parse(bad), None, "{bad}");
        }
    }
}
