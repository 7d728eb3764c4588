//! Configuration of IPv4: addresses, tables, routes.

use crate::cli_args::{kind_word, special_kind};
use crate::{Ip4, Path, PathKind, address};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use thalweg_config::declare::schema::MAX_ADDRESSES;
use thalweg_config::declare::{
    Doc, Draft, Dump, Found, Interface, Item, Kind, Later, Name, Node, Problem, Rule, Section,
    Value, Walk, address as parse_address, interface_key, rank,
};
use thalweg_device::Interfaces;
use thalweg_device::interface::InterfaceView;
use thalweg_graph::Control;
use thalweg_tables::{Ipv4Prefix, Sweep};

/// Section of addresses, tables and routes.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const TABLE: Kind = Kind::Int(0, u32::MAX as i128);

const RULES: &[Rule] = &[
    Rule::new("thalweg.interfaces.*.addresses", Kind::List(0, usize::MAX)),
    Rule::new("thalweg.interfaces.*.addresses.[]", Kind::Address),
    Rule::new("thalweg.interfaces.*.ip-table", TABLE),
    Rule::new("thalweg.ip-tables", Kind::Named(Name::Number(0, u32::MAX as u64))),
    Rule::new("thalweg.ip-tables.*", Kind::Keys),
    Rule::new("thalweg.ip-tables.*.routes", Kind::Named(Name::Any)),
    Rule::new("thalweg.ip-tables.*.routes.*", Kind::Other(route)),
];

/// A path in a document, written as in `ip route`: `192.0.2.1 host-eth0 weight 2`, `192.0.2.1
/// next-hop-table 7`, `host-eth0`, `drop`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Via<'a> {
    kind: PathKind,
    next_hop: Option<Ipv4Addr>,
    interface: Option<&'a str>,
    table: Option<u32>,
    weight: u8,
}

/// Words that end a next hop.
const ENDS: [&str; 2] = ["weight", "next-hop-table"];

impl<'a> Via<'a> {
    fn parse(text: &'a str) -> Option<Via<'a>> {
        let mut words = text.split_whitespace().peekable();
        let first = words.next()?;
        let kind = special_kind(first).unwrap_or(PathKind::Normal);
        let mut via = Via { kind, next_hop: None, interface: None, table: None, weight: 1 };
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
            Err(_) if first.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                via.interface = Some(first);
            }
            Err(_) => return None,
        }
        match words.next() {
            None => {}
            Some("weight") => via.weight = words.next()?.parse().ok().filter(|w| *w > 0)?,
            Some(_) => return None,
        }
        words.next().is_none().then_some(via)
    }

    fn write(names: &HashMap<u32, String>, path: &Path) -> String {
        if path.kind != PathKind::Normal {
            return kind_word(path.kind).to_owned();
        }
        let hop = path.next_hop.map(|h| h.to_string());
        let interface = path.sw_if.and_then(|i| names.get(&i).cloned());
        let table = path.table.map(|id| format!("next-hop-table {id}"));
        let weight = (path.weight != 1).then(|| format!("weight {}", path.weight));
        hop.into_iter().chain(interface).chain(table).chain(weight).collect::<Vec<_>>().join(" ")
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
                    [weight <n>]', `<interface>', or drop, local, unreachable, prohibit,";
    vias(value).map(|_| ()).ok_or_else(|| expected.into())
}

impl Section<Control> for Settings {
    fn supports(&self) -> &'static [&'static str] {
        &["interfaces.*.addresses.[]", "loopbacks.*.addresses.[]"]
    }

    fn rules(&self) -> &'static [Rule] {
        RULES
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let ip4 = c.state::<Ip4>();
        let ip4 = ip4.borrow();
        let all: Vec<u32> = c.state::<Interfaces>().borrow().iter().map(|v| v.sw_if).collect();
        for sw_if in all {
            let name = c.interface_name(sw_if);
            let table = ip4.table_of(sw_if);
            if table != 0 {
                out.set(&name, "ip-table", table);
            }
            for (a, l) in ip4.addresses(sw_if) {
                out.add(&name, "addresses", MAX_ADDRESSES, format!("{a}/{l}"));
            }
        }
        for table in ip4.table_ids().into_iter().filter(|t| *t != 0) {
            let id = table.to_string();
            out.put(&["thalweg", "ip-tables", &id], Value::Map(Default::default()));
        }
    }

    fn walk(&self, c: &Control) -> Option<Walk<Control>> {
        let mut tables = c.state::<Ip4>().borrow().table_ids();
        tables.reverse();
        let (mut at, mut routes, mut all) = (Sweep::default(), Vec::new(), Vec::new());
        Some(Box::new(move |c| {
            if let Some(table) = tables.last() {
                let ip4 = c.state::<Ip4>();
                if !ip4.borrow().sweep_configured(*table, &mut at, &mut routes) {
                    all.push((*table, std::mem::take(&mut routes)));
                    at = Sweep::default();
                    tables.pop();
                }
                return None;
            }
            let view = |v: &InterfaceView| (v.sw_if, v.name.clone());
            let names = c.state::<Interfaces>().borrow().iter().map(view).collect();
            let all = std::mem::take(&mut all);
            Some(Box::new(move |out: &mut Dump<'_>| write_routes(all, &names, out)) as Later)
        }))
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        let mut tables: Vec<u32> = vec![0];
        for (id, found) in doc.entries(&["thalweg", "ip-tables"]) {
            let Some(id) = id.parse().ok().filter(|id: &u32| *id != 0) else { continue };
            tables.push(id);
            let item =
                Item::new(rank::TABLE, table_key(id), found.path, format!("ip table add {id}"));
            out.add(item.unset(format!("ip table del {id}")).recreate());
        }
        let mut subnets: BTreeMap<u32, Vec<Subnet>> = BTreeMap::new();
        for i in doc.interfaces() {
            let table = bind(&i, &tables, out);
            for found in i.list("addresses") {
                if let Some(subnet) = one_address(&i, table, &found, out) {
                    overlap(&subnet, subnets.entry(table).or_default(), &found, out);
                    subnets.entry(table).or_default().push(subnet);
                }
            }
        }
        for table in tables {
            let connected = subnets.remove(&table).unwrap_or_default();
            routes(doc, table, &connected, out);
        }
    }
}

/// Routes of tables, as collected by a walk.
type Tables = Vec<(u32, Vec<(Ipv4Prefix, Vec<Path>)>)>;

fn write_routes(all: Tables, names: &HashMap<u32, String>, out: &mut Dump<'_>) {
    for (table, mut routes) in all {
        let id = table.to_string();
        routes.sort_by_key(|r| r.0);
        routes.dedup_by_key(|r| r.0);
        let written = |(prefix, paths): (Ipv4Prefix, Vec<Path>)| {
            let value = match &paths[..] {
                [one] => Value::Text(Via::write(names, one)),
                many => Value::List(many.iter().map(|p| Via::write(names, p).into()).collect()),
            };
            (prefix.to_string(), Node::from(value))
        };
        if !routes.is_empty() {
            let map = routes.into_iter().map(written).collect();
            out.put(&["thalweg", "ip-tables", &id, "routes"], Value::Map(map));
        }
    }
}

fn table_key(id: u32) -> String {
    format!("ip-table {id}")
}

fn bind_key(interface: &str) -> String {
    format!("ip-table of {interface}")
}

/// Binds an interface to its table; returns the table id.
fn bind(i: &Interface<'_>, tables: &[u32], out: &mut Draft) -> u32 {
    let Some(found) = i.get("ip-table") else { return 0 };
    let Some(table) = found.node.u32().filter(|t| *t != 0) else { return 0 };
    if !tables.contains(&table) {
        let text = format!("there is no table {table}; `thalweg.ip-tables.{table}: {{}}' makes it");
        out.problem(Problem::at(found.node, found.path, text));
        return table;
    }
    let set = |id: u32| format!("set interface ip table {} {id}", i.name);
    let item = Item::new(rank::BIND, bind_key(i.name), found.path, set(table)).unset(set(0));
    out.add(item.needs(interface_key(i.name)).needs(table_key(table)));
    table
}

/// A connected subnet.
struct Subnet {
    prefix: Ipv4Prefix,
    interface: String,
    text: String,
}

fn one_address(
    i: &Interface<'_>,
    table: u32,
    found: &Found<'_>,
    out: &mut Draft,
) -> Option<Subnet> {
    let (ip, len) = parse_address(found.node.text()?)?;
    let IpAddr::V4(ip) = ip else {
        out.problem(Problem::unsupported(found.node, &found.path, "an IPv6 address"));
        return None;
    };
    let prefix = match address::check(ip, len) {
        Ok(prefix) => prefix,
        Err(e) => {
            out.problem(Problem::at(found.node, &found.path, e.to_string()));
            return None;
        }
    };
    let name = i.name;
    let text = format!("{ip}/{len}");
    let set = format!("set interface ip address {name} {text}");
    let item = Item::new(rank::ADDRESS, format!("address {name} {text}"), &found.path, set)
        .unset(format!("set interface ip address del {name} {text}"));
    let item = item.needs(interface_key(name)).needs(bind_key(name));
    out.add(if table == 0 { item } else { item.needs(table_key(table)) });
    Some(Subnet { prefix, interface: name.to_owned(), text })
}

fn overlap(new: &Subnet, others: &[Subnet], found: &Found<'_>, out: &mut Draft) {
    let meets = |a: Ipv4Prefix, b: Ipv4Prefix| a.addr() <= b.last() && b.addr() <= a.last();
    let sister = |o: &Subnet| o.interface == new.interface && o.prefix == new.prefix;
    if let Some(o) = others.iter().find(|o| meets(o.prefix, new.prefix) && !sister(o)) {
        let text = format!("{} overlaps with {} on `{}'", new.text, o.text, o.interface);
        out.problem(Problem::at(found.node, &found.path, text));
    }
}

fn routes(doc: &Doc<'_>, table: u32, connected: &[Subnet], out: &mut Draft) {
    let id = table.to_string();
    let mut all: Vec<(Ipv4Prefix, Vec<Via<'_>>, Found<'_>)> = Vec::new();
    for (text, found) in doc.entries(&["thalweg", "ip-tables", &id, "routes"]) {
        let prefix = parse_address(text).and_then(|(ip, len)| match ip {
            IpAddr::V4(ip) => Ipv4Prefix::new(ip.to_bits(), len).ok(),
            IpAddr::V6(_) => None,
        });
        let Some(prefix) = prefix else {
            let text = format!("an IPv4 prefix such as 192.0.2.0/24 expected, not `{text}'");
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
    let names: HashSet<&str> = doc.interfaces().iter().map(|i| i.name).chain(["local0"]).collect();
    for (prefix, vias, found) in &all {
        let unknown = vias.iter().filter_map(|v| v.interface).find(|name| !names.contains(*name));
        if let Some(name) = unknown {
            let text = format!("there is no interface `{name}' in this document");
            out.problem(Problem::at(found.node, &found.path, text));
            continue;
        }
        let in_table = if table == 0 { String::new() } else { format!(" table {table}") };
        let paths: String = vias.iter().map(command).collect();
        let set = format!("ip route replace {prefix}{in_table}{paths}");
        let mut item = Item::new(rank::ROUTE, format!("route {table} {prefix}"), &found.path, set)
            .unset(format!("ip route del {prefix}{in_table}"))
            .order(order.of(*prefix, 0));
        let others = vias.iter().filter_map(|v| v.table).filter(|id| *id != table);
        for id in others.clone().filter(|id| *id != 0) {
            item = item.needs(table_key(id));
        }
        if others.count() > 0 {
            // The routes of the other tables come first.
            item = item.order(2 * DEPTH);
        }
        if table != 0 {
            item = item.needs(table_key(table));
        }
        for via in vias.iter().filter_map(|v| v.interface) {
            item = item.needs(interface_key(via));
        }
        out.add(item);
    }
}

fn command(via: &Via<'_>) -> String {
    if via.kind != PathKind::Normal {
        return format!(" via {}", kind_word(via.kind));
    }
    let hop = via.next_hop.map(|h| format!(" {h}")).unwrap_or_default();
    let interface = via.interface.map(|i| format!(" {i}")).unwrap_or_default();
    let table = via.table.map(|id| format!(" next-hop-table {id}")).unwrap_or_default();
    format!(" via{hop}{interface}{table} weight {}", via.weight)
}

/// Order of routes: a next hop must be reachable before it is used.
struct Order<'a> {
    routes: HashMap<(u32, u8), &'a [Via<'a>]>,
    connected: HashMap<(u32, u8), ()>,
}

/// Maximum depth of recursion that is ordered.
const DEPTH: u32 = 16;

impl<'a> Order<'a> {
    fn new(all: &'a [(Ipv4Prefix, Vec<Via<'a>>, Found<'a>)], connected: &[Subnet]) -> Order<'a> {
        let key = |p: Ipv4Prefix| (p.addr(), p.len());
        Order {
            routes: all.iter().map(|(p, vias, _)| (key(*p), vias.as_slice())).collect(),
            connected: connected.iter().map(|s| (key(s.prefix), ())).collect(),
        }
    }

    /// Number of routes that must precede this one.
    fn of(&self, prefix: Ipv4Prefix, depth: u32) -> u32 {
        let Some(vias) = self.routes.get(&(prefix.addr(), prefix.len())) else { return 0 };
        let own = vias.iter().filter(|v| v.interface.is_none() && v.table.is_none());
        let recursive = own.filter_map(|v| v.next_hop);
        let above = |hop: Ipv4Addr| {
            let covers = (0..=32).rev().filter_map(|len| Ipv4Prefix::new(hop.to_bits(), len).ok());
            for cover in covers {
                let key = (cover.addr(), cover.len());
                if self.connected.contains_key(&key) {
                    return 0;
                }
                if self.routes.contains_key(&key) {
                    let goes_on = depth < DEPTH && cover != prefix;
                    return if goes_on { 1 + self.of(cover, depth + 1) } else { 1 };
                }
            }
            0
        };
        recursive.map(above).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_config::declare::{Catalog, Document};

    fn commands(text: &str) -> Vec<String> {
        let catalog: Catalog<Control> = Catalog::new(vec![&Claims, &SETTINGS]).unwrap();
        let document = catalog.read("f", text).unwrap_or_else(|e| panic!("{e}"));
        Document::default().plan_to(&document).commands().map(str::to_owned).collect()
    }

    /// Takes any interface.
    struct Claims;
    impl Section<Control> for Claims {
        fn dump(&self, _: &Control, _: &mut Dump<'_>) {}
        fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
            doc.interfaces().iter().for_each(|i| out.claim(i.name));
        }
    }

    fn wrong(text: &str) -> String {
        let catalog: Catalog<Control> = Catalog::new(vec![&Claims, &SETTINGS]).unwrap();
        catalog.read("f", text).unwrap_err().to_string()
    }

    #[test]
    fn paths_are_written_as_commands_are() {
        let path = |text| Via::parse(text).map(|v| command(&v));
        assert_eq!(path("192.0.2.1").as_deref(), Some(" via 192.0.2.1 weight 1"));
        assert_eq!(path("192.0.2.1 pg0 weight 3").as_deref(), Some(" via 192.0.2.1 pg0 weight 3"));
        let in_table = path("192.0.2.1 next-hop-table 7 weight 3");
        assert_eq!(in_table.as_deref(), Some(" via 192.0.2.1 next-hop-table 7 weight 3"));
        assert_eq!(path("host-eth0").as_deref(), Some(" via host-eth0 weight 1"));
        assert_eq!(path("drop").as_deref(), Some(" via drop"));
        for bad in [
            "",
            "192.0.2",
            "192.0.2.1 weight",
            "192.0.2.1 next-hop-table",
            "192.0.2.1 pg0 next-hop-table 7",
            "192.0.2.1 next-hop-table x",
            "192.0.2.1 weight 0",
            "drop pg0",
            "weight 2 pg0 x",
            "192.0.2.1 pg0 weight 256",
            "192.0.2.1 pg0 pg1",
        ] {
            assert_eq!(Via::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_next_hop_precedes_routes_through_it() {
        let routes = "
interfaces: {pg0: {addresses: [10.0.0.1/24]}}
thalweg:
  ip-tables:
    0:
      routes:
        0.0.0.0/0: 172.16.0.1
        172.16.0.0/16: 192.168.0.1
        192.168.0.0/16: [10.0.0.2, 10.0.0.3 pg0 weight 2]
    7: {}
";
        assert_eq!(
            commands(routes),
            [
                "ip table add 7",
                "set interface ip address pg0 10.0.0.1/24",
                "ip route replace 192.168.0.0/16 via 10.0.0.2 weight 1 via 10.0.0.3 pg0 weight 2",
                "ip route replace 172.16.0.0/16 via 192.168.0.1 weight 1",
                "ip route replace 0.0.0.0/0 via 172.16.0.1 weight 1",
            ]
        );
    }

    #[test]
    fn mistakes_are_found_before_anything_is_done() {
        let table = |routes: &str| {
            wrong(&format!("thalweg: {{ip-tables: {{0: {{routes: {{{routes}}}}}}}}}\n"))
        };
        assert!(table("10.0.0.0/8: pg7").contains("no interface `pg7'"));
        assert!(table("10.0.0.0: drop").contains("an IPv4 prefix such as"));
        assert!(table("10.0.0.0/8: 5").contains("a path or a list of paths"));
        assert!(table("10.0.0.0/8: [drop, pg0]").contains("a path or a list of paths"));
        let both =
            "interfaces:\n  pg0: {addresses: [10.0.0.1/24]}\n  pg1: {addresses: [10.0.0.9/25]}\n";
        assert!(wrong(both).contains("10.0.0.9/25 overlaps with 10.0.0.1/24 on `pg0'"));
        assert!(
            wrong("interfaces: {pg0: {addresses: ['2001:db8::1/64']}}\n")
                .contains("not supported yet")
        );
        assert!(
            wrong("interfaces: {pg0: {addresses: [10.0.0.0/24]}}\n")
                .contains("it is the subnet address")
        );
        assert!(wrong("thalweg: {interfaces: {pg0: {ip-table: 5}}}\n").contains("no table 5"));
    }

    #[test]
    fn addresses_wait_for_their_table() {
        let text = "
interfaces: {pg0: {addresses: [10.0.0.1/24]}, pg1: {addresses: [10.0.0.1/24]}}
thalweg: {interfaces: {pg1: {ip-table: 7}}, ip-tables: {7: ~}}
";
        assert_eq!(
            commands(text),
            [
                "ip table add 7",
                "set interface ip table pg1 7",
                "set interface ip address pg0 10.0.0.1/24",
                "set interface ip address pg1 10.0.0.1/24",
            ]
        );
    }
}
