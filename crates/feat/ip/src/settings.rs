//! Configuration of a version of IP: addresses, tables, routes.

use crate::address::AddressError;
use crate::family::{Family, IfAddress, Version, for_version};
use crate::path_mtu::{self, LARGEST};
use crate::redirect::{self, RedirectError};
use crate::subnets::Subnets;
use crate::{Ip, Path, PathKind, address};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::net::IpAddr;
use std::rc::Rc;
use thalweg_config::declare::schema::MAX_ADDRESSES;
use thalweg_config::declare::{
    Doc, Draft, Dump, Found, Interface, Item, Kind, Later, Name, Node, Problem, Rule, Section,
    Slices, Value, Walk, address as parse_address, interface_key, no_interface, rank,
};
use thalweg_device::interface::InterfaceView;
use thalweg_device::{Interfaces, SwIfIndex, each_interface};
use thalweg_fib::path_words::path_of;
use thalweg_fib::{PathText, Place, TableId};
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix, Sweep};

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
    Rule::new("thalweg.ip-tables.*.routes.*", Kind::Other(route::<u32>)),
    Rule::new("thalweg.ip-tables.*.path-mtus", Kind::Named(Name::Any)),
    Rule::new("thalweg.ip-tables.*.path-mtus.*", Kind::Int(68, LARGEST as i128)),
    Rule::new("thalweg.ip-punt-redirects", Kind::Named(Name::Any)),
    Rule::new("thalweg.ip-punt-redirects.*", Kind::Other(route::<u32>)),
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
    Rule::new("thalweg.ip6-tables.*.routes.*", Kind::Other(route::<u128>)),
    Rule::new("thalweg.ip6-tables.*.path-mtus", Kind::Named(Name::Any)),
    Rule::new("thalweg.ip6-tables.*.path-mtus.*", Kind::Int(1280, LARGEST as i128)),
    Rule::new("thalweg.ip6-punt-redirects", Kind::Named(Name::Any)),
    Rule::new("thalweg.ip6-punt-redirects.*", Kind::Other(route::<u128>)),
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
    /// Key of interfaces that speak the version without an address.
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
type Via<'a> = PathText<&'a str>;

fn via<A: Address>(text: Option<&str>) -> Result<Via<'_>, String> {
    let path = path_of(text.ok_or(EXPECTED)?)?;
    let other = |why| format!("a path of such a route ({why})");
    path.of_route(Version::of::<A>()).map_err(other)
}

/// Reads one path or several; the error says what is expected.
fn vias<A: Address>(value: &Value) -> Result<Vec<Via<'_>>, String> {
    let all: Vec<Via<'_>> = match value {
        Value::Text(text) => vec![via::<A>(Some(text))?],
        Value::List(list) => list.iter().map(|n| via::<A>(n.text())).collect::<Result<_, _>>()?,
        _ => return Err(EXPECTED.into()),
    };
    match &all[..] {
        [_] => Ok(all),
        [_, _, ..] if all.iter().all(|v| v.place.kind() == Some(PathKind::Normal)) => Ok(all),
        _ => Err(EXPECTED.into()),
    }
}

const EXPECTED: &str = "a path or a list of paths: `<next hop> [<interface> | next-hop-table <id>] \
                        [weight <n>] [preference <n>] [out-labels <label> ... [uniform]]', \
                        `<interface>', `via-label <label> ...', `ip4-lookup-in-table <id>', \
                        `rx-ip4 <interface>', or drop, local, unreachable, prohibit,";

fn route<A: Address>(value: &Value) -> Result<(), String> {
    vias::<A>(value).map(|_| ())
}

impl<A: Address> Section<Control> for Settings<A> {
    fn supports(&self) -> Vec<&'static str> {
        vec![
            "interfaces.*.addresses.[]",
            "interfaces.*.unnumbered",
            "loopbacks.*.addresses.[]",
            "loopbacks.*.unnumbered",
        ]
    }

    fn rules(&'static self) -> Vec<Rule> {
        match Version::of::<A>() {
            Version::V4 => RULES.to_vec(),
            Version::V6 => RULES_6.to_vec(),
        }
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let mut slices = slices(self.0);
        while !slices(c, out) {}
    }

    fn slices(&self, _: &Control) -> Option<Slices<Control>> {
        Some(slices(self.0))
    }

    fn walk(&self, c: &Control) -> Option<Walk<Control>> {
        let mut tables = c.state::<Ip<A>>().borrow().table_ids();
        tables.reverse();
        let (mut at, mut routes, mut all) = (Sweep::default(), Vec::new(), Vec::new());
        let (mut names, mut named) = (HashMap::new(), 0);
        Some(Box::new(move |c| {
            let Some(table) = tables.last() else {
                let (all, names) = (std::mem::take(&mut all), std::mem::take(&mut names));
                let write = move |out: &mut Dump<'_>| write_routes(all, &names, out);
                return Some(Box::new(write) as Later);
            };
            let ip = c.state::<Ip<A>>();
            let has_more = ip.borrow().sweep_configured(*table, &mut at, &mut routes);
            name(c, routes[named..].iter().flat_map(|(_, paths)| paths), &mut names);
            named = routes.len();
            if !has_more {
                all.push((*table, std::mem::take(&mut routes)));
                (at, named) = (Sweep::default(), 0);
                tables.pop();
            }
            None
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
            let name = found.node.get("name").and_then(Node::text);
            if let Some(name) = name.filter(|name| !name.is_empty()) {
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

/// Writes all but routes, in slices: first what interfaces have.
fn slices<A: Address>(family: &'static dyn Family<A>) -> Slices<Control> {
    let mut ports = each_interface(move |c, v, out| dump_interface(family, c, v, out));
    Box::new(move |c, out| {
        let is_done = ports(c, out);
        if is_done {
            dump_tables::<A>(c, out);
        }
        is_done
    })
}

fn dump_interface<A: Address>(
    family: &dyn Family<A>,
    c: &Control,
    v: &InterfaceView,
    out: &mut Dump<'_>,
) {
    let (ip, keys, name) = (c.state::<Ip<A>>(), keys::<A>(), &v.name);
    let ip = ip.borrow();
    let table = ip.table_of(v.sw_if);
    if table != TableId(0) {
        out.set(name, keys.table, table.0);
    }
    if ip.is_configured(v.sw_if) {
        out.set(name, keys.enabled, true);
    }
    let chosen = ip.addresses(v.sw_if).iter().filter(|a| !ip.is_found(v.sw_if, **a));
    for address in chosen.chain(&family.link_addresses(c, v.sw_if)) {
        out.add(name, "addresses", MAX_ADDRESSES, address.to_string());
    }
    // Versions borrow together, so that one has the setting.
    if let Some(lender) = ip.lender(v.sw_if).filter(|_| Version::of::<A>() == Version::V4) {
        out.set(name, "unnumbered", c.interface_name(lender));
    }
}

/// Writes tables, but for their routes, and redirects.
fn dump_tables<A: Address>(c: &Control, out: &mut Dump<'_>) {
    let (ip, keys) = (c.state::<Ip<A>>(), keys::<A>());
    let ip = ip.borrow();
    let is_written = |table: &TableId| *table != TableId(0) && !ip.is_needed_only(*table);
    for table in ip.table_ids().into_iter().filter(is_written) {
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
    for (rx_if, paths, _) in redirect::all::<A>(c) {
        let mut names = HashMap::new();
        name(c, &paths, &mut names);
        let rx = redirect::rx_name(c, rx_if);
        out.put(&["thalweg", keys.redirects, &rx], written::<A>(&names, &paths));
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
    let word = Version::of::<A>().word();
    for (rx, found) in doc.entries(&["thalweg", keys::<A>().redirects]) {
        // The schema has checked it.
        let Ok(vias) = vias::<A>(&found.node.value) else { continue };
        let named = vias.iter().filter_map(|v| v.place.interface().copied());
        let leads =
            |v: &Via<'_>| matches!(v.place.kind(), Some(PathKind::Normal | PathKind::Lookup(_)));
        if !vias.iter().all(leads) {
            let text = RedirectError::NoPath.to_string();
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        }
        let set = format!("{word} punt redirect add rx {rx}{}", command(&vias));
        let key = format!("{word} punt redirect of {rx}");
        let mut item = Item::new(rank::ROUTE, key, &found.path, set)
            .unset(format!("{word} punt redirect del rx {rx}"))
            .order(2 * DEPTH);
        let tables = vias.iter().filter_map(named_table::<A>);
        for (version, id) in tables.filter(|(_, id)| *id != TableId(0)) {
            item = item.needs(for_version!(version, table_key(id)));
        }
        for name in named.chain((rx != "all").then_some(rx)) {
            item = item.needs(interface_key(name));
        }
        out.add(item);
    }
}

/// Routes of tables, as collected by a walk.
type Tables<A> = Vec<(TableId, Vec<(Prefix<A>, Vec<Path>)>)>;

/// Notes the names of the interfaces that paths lead over.
fn name<'p>(
    c: &Control,
    paths: impl IntoIterator<Item = &'p Path>,
    names: &mut HashMap<SwIfIndex, String>,
) {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    for sw_if in paths.into_iter().filter_map(|path| path.sw_if) {
        let name = || all.get(sw_if).map_or_else(String::new, |v| v.name.clone());
        names.entry(sw_if).or_insert_with(name);
    }
}

/// Paths as a document has them.
fn written<A: Address>(names: &HashMap<SwIfIndex, String>, paths: &[Path]) -> Value {
    let name = |i| names.get(&i).map_or("", String::as_str);
    let text = |p: &Path| PathText::of(p, Version::of::<A>()).map(name).to_string();
    match paths {
        [one] => Value::Text(text(one)),
        many => Value::List(many.iter().map(|p| text(p).into()).collect()),
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
        let problem = Problem::at(found.node, found.path, text);
        out.problem(problem.absent(table_key::<A>(table)));
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
        let problem = Problem::at(found.node, found.path, format!("{wrong}, not `{lender}'"));
        out.problem(match lender == i.name {
            true => problem,
            false => problem.absent(interface_key(lender)),
        });
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

/// A path or paths as a document has them: very many routes have the same.
struct Known<'a> {
    vias: Vec<Via<'a>>,
    /// Words of a command.
    command: String,
    /// Keys of the items that routes with these paths need, but for their own table.
    needs: Vec<String>,
    /// Paths over interfaces that the document does not have.
    unknown: Vec<(usize, &'a str)>,
    /// They lead to other tables.
    is_of_others: bool,
}

impl<'a> Known<'a> {
    fn new<A: Address>(
        value: &'a Value,
        table: TableId,
        names: &HashSet<&str>,
    ) -> Option<Rc<Known<'a>>> {
        // The schema has checked it.
        let vias = vias::<A>(value).ok()?;
        let own = (Version::of::<A>(), table);
        let others: Vec<(Version, TableId)> =
            vias.iter().filter_map(named_table::<A>).filter(|other| *other != own).collect();
        let tables = others.iter().filter(|other| other.1 != TableId(0));
        let tables = tables.map(|(version, id)| for_version!(*version, table_key(*id)));
        let mine = (table != TableId(0)).then(|| table_key::<A>(table));
        let by = vias.iter().filter_map(|v| v.place.interface().copied());
        let unknown = vias.iter().enumerate().filter_map(|(i, v)| Some((i, *v.place.interface()?)));
        Some(Rc::new(Known {
            command: command(&vias),
            needs: tables.chain(mine).chain(by.map(interface_key)).collect(),
            unknown: unknown.filter(|(_, name)| !names.contains(name)).collect(),
            is_of_others: !others.is_empty(),
            vias,
        }))
    }
}

/// A route of a document.
type Written<'a, A> = (Prefix<A>, Rc<Known<'a>>, Found<'a>);

fn routes<A: Address>(
    doc: &Doc<'_>,
    table: TableId,
    connected: &Subnets<A, Subnet<A>>,
    out: &mut Draft,
) {
    let (id, keys, name) = (table.to_string(), keys::<A>(), Version::of::<A>().name());
    // The router's own interface exists without being named.
    let names: HashSet<&str> =
        doc.interfaces().iter().map(|i| &*i.name).chain(["local0"]).collect();
    let mut all: Vec<Written<'_, A>> = Vec::new();
    let mut known: HashMap<&str, Rc<Known<'_>>> = HashMap::new();
    for (text, found) in doc.entries(&["thalweg", keys.tables, &id, "routes"]) {
        let parsed = parse_address(text).and_then(|(ip, len)| Some((A::from_ip(ip)?, len)));
        let Some(prefix) = parsed.and_then(|(addr, len)| Prefix::new(addr, len).ok()) else {
            let such = keys.prefix;
            let text = format!("an {name} prefix such as {such} expected, not `{text}'");
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        };
        let same = found.node.text().and_then(|text| known.get(text)).cloned();
        let paths = same.or_else(|| {
            let new = Known::new::<A>(&found.node.value, table, &names)?;
            known.extend(found.node.text().map(|text| (text, new.clone())));
            Some(new)
        });
        all.extend(paths.map(|paths| (prefix, paths, found)));
    }
    let order = Order::new(&all, connected);
    let in_table = if table == TableId(0) { String::new() } else { format!(" table {table}") };
    let mut shown = String::new();
    for (prefix, paths, found) in &all {
        for (i, name) in &paths.unknown {
            let text = no_interface(name);
            // One path of several is wrong.
            let path = match found.node.list() {
                [] => found.path.clone(),
                _ => format!("{}[{i}]", found.path),
            };
            let problem = Problem::at(found.node, path, text);
            out.problem(problem.absent(interface_key(name)));
        }
        if !paths.unknown.is_empty() {
            continue;
        }
        let hops = paths.vias.iter().filter_map(|v| v.place.next_hop());
        hops.filter(|h| A::from_ip(*h).is_none())
            .for_each(|hop| foreign(hop, "next hop", found, out));
        shown.clear();
        let _ = write!(shown, "{prefix}");
        let set = ["ip route replace ", &shown, &in_table, &paths.command].concat();
        let key = [keys.item, "route ", &id, " ", &shown].concat();
        let unset = ["ip route del ", &shown, &in_table].concat();
        // The routes of the other tables come first.
        let order = if paths.is_of_others { 2 * DEPTH } else { order.of(*prefix, 0) };
        let item = Item::new(rank::ROUTE, key, &found.path, set).unset(unset).order(order);
        out.add(paths.needs.iter().fold(item, |item, need| item.needs(need)));
    }
}

/// Words of a command for paths. Their order means nothing.
fn command(vias: &[Via<'_>]) -> String {
    let mut paths: Vec<String> = vias.iter().map(|via| format!(" via {via}")).collect();
    paths.sort_unstable();
    paths.concat()
}

/// Another table that a path names, and its version.
fn named_table<A: Address>(via: &Via<'_>) -> Option<(Version, TableId)> {
    let own = Version::of::<A>();
    match via.place {
        Place::Lookup(_, id) => Some((own, id)),
        Place::NextHop { address, interface: None, table } if Version::of_ip(address) != own => {
            Some((Version::of_ip(address), table.unwrap_or(TableId(0))))
        }
        Place::NextHop { table, .. } => Some((own, table?)),
        _ => None,
    }
}

/// Next hops that routes lead to.
fn recursive(vias: &[Via<'_>]) -> impl Iterator<Item = IpAddr> {
    vias.iter().filter_map(|v| match v.place {
        Place::NextHop { address, interface: None, table: None } => Some(address),
        _ => None,
    })
}

/// Order of routes: a next hop must be reachable before it is used.
struct Order<'a, A> {
    /// Empty if no next hop depends on a route.
    routes: HashMap<Prefix<A>, &'a [Via<'a>]>,
    connected: HashSet<Prefix<A>>,
    /// Lengths of existing prefixes, longest first.
    lengths: Vec<u8>,
    /// Routes that cover the next hops seen so far: very many routes may have the same.
    covers: RefCell<HashMap<A, Option<Prefix<A>>>>,
}

/// Maximum depth of recursion that is ordered.
const DEPTH: u32 = 16;

impl<'a, A: Address> Order<'a, A> {
    fn new(all: &'a [Written<'a, A>], connected: &Subnets<A, Subnet<A>>) -> Order<'a, A> {
        let connected: HashSet<Prefix<A>> = connected.iter().collect();
        let is_recursive = |(_, paths, _): &Written<'_, A>| recursive(&paths.vias).next().is_some();
        if !all.iter().any(is_recursive) {
            let (routes, covers) = (HashMap::new(), RefCell::default());
            return Order { routes, connected, lengths: Vec::new(), covers };
        }
        let lengths: BTreeSet<u8> =
            all.iter().map(|(p, ..)| p.len()).chain(connected.iter().map(|p| p.len())).collect();
        Order {
            routes: all.iter().map(|(p, paths, _)| (*p, paths.vias.as_slice())).collect(),
            connected,
            lengths: lengths.into_iter().rev().collect(),
            covers: RefCell::default(),
        }
    }

    /// The route that covers a next hop, unless a connected subnet does.
    fn cover(&self, hop: A) -> Option<Prefix<A>> {
        let find = || {
            let covers = self.lengths.iter().filter_map(|len| Prefix::new(hop, *len).ok());
            let mut known =
                covers.filter(|p| self.connected.contains(p) || self.routes.contains_key(p));
            known.next().filter(|cover| !self.connected.contains(cover))
        };
        *self.covers.borrow_mut().entry(hop).or_insert_with(find)
    }

    /// Number of routes that must precede this one.
    fn of(&self, prefix: Prefix<A>, depth: u32) -> u32 {
        let Some(vias) = self.routes.get(&prefix) else { return 0 };
        let above = |hop: A| match self.cover(hop) {
            None => 0,
            Some(cover) if depth < DEPTH && cover != prefix => 1 + self.of(cover, depth + 1),
            Some(_) => 1,
        };
        recursive(vias).filter_map(A::from_ip).map(above).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_commands_are() {
        let text = |text: &str| Value::Text(text.into());
        for (typed, written) in [
            ("192.0.2.1 weight 1", "192.0.2.1"),
            (
                "192.0.2.1 pg0 out-labels 17 pop weight 2",
                "192.0.2.1 pg0 weight 2 out-labels 17 implicit-null",
            ),
            ("lookup in table 7", "ip4-lookup-in-table 7"),
            ("ip4-lookup-in-table 7", "ip4-lookup-in-table 7"),
            ("rx-ip6 pg0", "rx-ip4 pg0"),
        ] {
            let value = text(typed);
            assert_eq!(vias::<u32>(&value).map(|v| command(&v)), Ok(format!(" via {written}")));
        }
        let value = text("lookup in table 7");
        let want = " via ip6-lookup-in-table 7";
        assert_eq!(vias::<u128>(&value).map(|v| command(&v)).as_deref(), Ok(want));
        for (bad, why) in [
            ("192.0.2.1 weight 0", "as weight in the place of `0'"),
            ("ip6-lookup-in-table 7", "`ip6-lookup-in-table' is for IPv6 prefixes only"),
            ("l2-input-on pg0", "`l2-input-on' is for labels only"),
        ] {
            let said = route::<u32>(&text(bad)).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
