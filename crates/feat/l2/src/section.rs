//! Configuration of layer 2.

use crate::api_types::{Delay, Watchers};
use crate::bridges::LEARN_LIMIT;
use crate::cli::set_interface_l2_tag_rewrite::rewrite;
use crate::{Address, Domain, L2, MAX_BRIDGE_ID, Origin, PortFlags};
use std::collections::HashSet;
use std::net::IpAddr;
use thalweg_cli::Args;
use thalweg_config::declare::schema::VPPCFG;
use thalweg_config::declare::{
    Doc, Draft, Dump, Found, Interface, Item, Kind, Later, Name, Node, Problem, Rule, Section,
    Slices, Value, Walk, interface_key, mac, rank,
};
use thalweg_device::{TagRewrite, each_interface, interface};
use thalweg_graph::Control;
use thalweg_wire::MacAddr;

/// Section of cross connects and bridge domains.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const RULES: &[Rule] = &[
    Rule::new("thalweg.interfaces.*.l2xc", Kind::Name(Name::Any)),
    Rule::new("thalweg.interfaces.*.split-horizon-group", Kind::Int(0, 255)),
    Rule::new("thalweg.interfaces.*.tag-rewrite", Kind::Other(tag_rewrite)),
    Rule::new("thalweg.interfaces.*.l2-input", Kind::Keys),
    Rule::new("thalweg.interfaces.*.l2-input.learn", Kind::Bool),
    Rule::new("thalweg.interfaces.*.l2-input.forward", Kind::Bool),
    Rule::new("thalweg.interfaces.*.l2-input.flood", Kind::Bool),
    Rule::new("thalweg.interfaces.*.l2-input.uu-flood", Kind::Bool),
    Rule::new("thalweg.interfaces.*.l2-input.arp-term", Kind::Bool),
    Rule::new("thalweg.l2", Kind::Keys),
    Rule::new("thalweg.l2.default-learn-limit", Kind::Int(0, u32::MAX as i128)),
    Rule::new("thalweg.l2.scan-delay", Kind::Int(1, u16::MAX as i128)),
    Rule::new("thalweg.bridgedomains", Kind::Named(Name::Numbered("bd"))),
    Rule::new("thalweg.bridgedomains.*", Kind::Keys),
    Rule::new("thalweg.bridgedomains.*.bvi", Kind::Name(Name::Any)),
    Rule::new("thalweg.bridgedomains.*.uu-fwd", Kind::Name(Name::Any)),
    Rule::new("thalweg.bridgedomains.*.learn-limit", Kind::Int(0, u32::MAX as i128)),
    Rule::new("thalweg.bridgedomains.*.tag", Kind::Other(tag)),
    Rule::new("thalweg.bridgedomains.*.arp-entries", Kind::Named(Name::Any)),
    Rule::new("thalweg.bridgedomains.*.arp-entries.*", Kind::Mac),
    Rule::new("thalweg.bridgedomains.*.l2fib", Kind::Named(Name::Any)),
    Rule::new("thalweg.bridgedomains.*.l2fib.*", Kind::Other(mac_entry)),
];

/// MTU of interfaces and bridge domains for which the document sets none.
const DEFAULT_MTU: u32 = 1500;
/// Table entries visited per step.
const AT_ONCE: u32 = 1024;

/// The schema's switches, their CLI names and defaults.
const SWITCHES: [(&str, &str, bool); 6] = [
    ("learn", "learn", true),
    ("unicast-flood", "flood", true),
    ("unknown-unicast-flood", "uu-flood", true),
    ("unicast-forward", "forward", true),
    ("arp-termination", "arp term", false),
    ("arp-unicast-forward", "arp-ufwd", false),
];

/// Flags of ports, by key and CLI name.
const PORT_SWITCHES: [(&str, PortFlags); 5] = [
    ("learn", PortFlags::LEARN),
    ("forward", PortFlags::FORWARD),
    ("flood", PortFlags::FLOOD),
    ("uu-flood", PortFlags::FLOOD_UNKNOWN),
    ("arp-term", PortFlags::ARP_TERM),
];

fn tag(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) => crate::check_tag(text).map_err(|e| e.to_string()),
        _ => Err("a text".into()),
    }
}

/// A rewrite in the words of `set interface l2 tag-rewrite`.
fn tag_rewrite(value: &Value) -> Result<(), String> {
    let expected = "such as `disable', `pop 1', `push dot1q 100' or `translate 1-1 dot1q 100'";
    match value {
        Value::Text(text) if read_rewrite(text).is_some() => Ok(()),
        _ => Err(expected.into()),
    }
}

fn read_rewrite(text: &str) -> Option<TagRewrite> {
    let mut args = Args::parse(text).ok()?;
    let rewrite = rewrite(&mut args).ok()?;
    args.end().ok().map(|()| rewrite)
}

/// Value of a MAC address entry: `filter`, or a port, optionally followed by `static`.
fn mac_entry(value: &Value) -> Result<(), String> {
    let words = match value {
        Value::Text(text) => text.split_whitespace().collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    match words[..] {
        [_] | [_, "static"] => Ok(()),
        _ => Err("`<port>', `<port> static' or `filter'".into()),
    }
}

/// Writes all but MAC addresses, in slices: tag rewrites are looked for on all interfaces.
fn slices() -> Slices<Control> {
    let mut has_begun = false;
    let mut rewrites = each_interface(|c, v, out| {
        let l2 = c.state::<L2>();
        let l2 = l2.borrow();
        let is_there = l2.xconnect(v.sw_if).is_some() || l2.bridges().of(v.sw_if).is_some();
        let usual = match is_there {
            true => TagRewrite::usual(v.sub.map(|(_, of)| of)),
            false => TagRewrite::NONE,
        };
        if v.rewrite != usual {
            out.set(&v.name, "tag-rewrite", v.rewrite.to_string());
        }
    });
    Box::new(move |c, out| {
        if !std::mem::replace(&mut has_begun, true) {
            dump_members(c, out);
        }
        let is_done = rewrites(c, out);
        let delay = c.state::<Watchers>().borrow().delay;
        if is_done && delay != Delay::DEFAULT {
            out.put(&["thalweg", "l2", "scan-delay"], u64::from(delay.0.get()));
        }
        is_done
    })
}

/// Writes cross connects and bridge domains.
fn dump_members(c: &Control, out: &mut Dump<'_>) {
    let l2 = c.state::<L2>();
    let l2 = l2.borrow();
    for (rx, tx) in l2.xconnects() {
        out.set(&c.interface_name(rx), "l2xc", c.interface_name(tx));
    }
    dump_bridges(c, &l2, out);
}

impl Section<Control> for Settings {
    fn supports(&self) -> Vec<&'static str> {
        vec![
            "interfaces.*.l2xc",
            "bridgedomains.*.bvi",
            "bridgedomains.*.description",
            "bridgedomains.*.interfaces.[]",
            "bridgedomains.*.mtu",
            "bridgedomains.*.settings.learn",
            "bridgedomains.*.settings.unicast-flood",
            "bridgedomains.*.settings.unknown-unicast-flood",
            "bridgedomains.*.settings.unicast-forward",
            "bridgedomains.*.settings.mac-age-minutes",
            "bridgedomains.*.settings.arp-termination",
            "bridgedomains.*.settings.arp-unicast-forward",
        ]
    }

    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let mut slices = slices();
        while !slices(c, out) {}
    }

    fn slices(&self, _: &Control) -> Option<Slices<Control>> {
        Some(slices())
    }

    fn walk(&self, _: &Control) -> Option<Walk<Control>> {
        let (mut at, mut found) = (0, StaticMacs::new());
        Some(Box::new(move |c| {
            if let Some(next) = configured(c, at, &mut found) {
                at = next;
                return None;
            }
            let mut found = std::mem::take(&mut found);
            Some(Box::new(move |out: &mut Dump<'_>| {
                found.sort_unstable_by_key(|(id, mac, _)| (*id, mac.0));
                for (id, mac, text) in found {
                    let (name, mac) = (format!("bd{id}"), mac.to_string());
                    out.put(&["thalweg", "bridgedomains", &name, "l2fib", &mac], text);
                }
            }) as Later)
        }))
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        rewrites(doc, out);
        switches(doc, out);
        for i in doc.interfaces() {
            let Some(found) = i.get("l2xc") else { continue };
            let Some(to) = found.node.text() else { continue };
            let wrong = match to {
                to if to == i.name => {
                    Some("another interface expected: an interface cannot be connected to itself")
                }
                to if doc.interface(to).is_none() => Some("an interface of this document expected"),
                _ => None,
            };
            if let Some(wrong) = wrong {
                let problem = Problem::at(found.node, found.path, format!("{wrong}, not `{to}'"));
                out.problem(match to == i.name {
                    true => problem,
                    false => problem.absent(interface_key(to)),
                });
                continue;
            }
            let set = format!("set interface l2 xconnect {} {to}", i.name);
            let item = Item::new(rank::L2, format!("l2xc {}", i.name), found.path, set)
                .unset(format!("set interface l3 {}", i.name));
            out.add(item.needs(interface_key(&i.name)).needs(interface_key(to)));
        }
        if let Some(found) = doc.at(&["thalweg", "l2", "default-learn-limit"])
            && found.node.value != Value::from(u64::from(LEARN_LIMIT))
        {
            let set = |n: &str| format!("set bridge-domain default-learn-limit {n}");
            let (now, default) = (found.node.value.to_string(), LEARN_LIMIT.to_string());
            let item =
                Item::new(rank::BEFORE_CREATE, "l2 default-learn-limit", found.path, set(&now));
            out.add(item.unset(set(&default)));
        }
        if let Some(found) = doc.at(&["thalweg", "l2", "scan-delay"]) {
            let set = |n: &str| format!("set bridge-domain scan-delay {n}");
            let now = set(&found.node.value.to_string());
            let default = set(&Delay::DEFAULT.0.to_string());
            if now != default {
                out.add(Item::new(rank::L2, "l2 scan-delay", found.path, now).unset(default));
            }
        }
        let mut names: Vec<&str> = Vec::new();
        for table in [&["bridgedomains"][..], &["thalweg", "bridgedomains"]] {
            for (name, found) in doc.entries(table) {
                if !names.contains(&name) {
                    names.push(name);
                    one_bridge(doc, name, &found, out);
                }
            }
        }
    }
}

/// Reads changes of VLAN tags. Sub-interfaces in layer 2 that a document leaves out remove the tags
/// that they are known by, as in vppcfg.
fn rewrites(doc: &Doc<'_>, out: &mut Draft) {
    let lists = doc.entries(&["bridgedomains"]).into_iter().filter_map(|(_, bridge)| {
        let list = bridge.node.get("interfaces")?;
        Some(list.list().iter().filter_map(Node::text).collect::<Vec<_>>())
    });
    let bridged: HashSet<&str> = lists.flatten().collect();
    for i in doc.interfaces() {
        let (now, path) = match i.get("tag-rewrite") {
            Some(found) => {
                let Some(rewrite) = found.node.text().and_then(read_rewrite) else { continue };
                (rewrite.to_string(), found.path)
            }
            None if i.get("l2xc").is_none() && !bridged.contains(&*i.name) => continue,
            None => match i.known_tags() {
                0 => continue,
                n => (TagRewrite::pop(n).to_string(), i.path("")),
            },
        };
        if now == "disable" {
            continue;
        }
        let set = |words: &str| format!("set interface l2 tag-rewrite {} {words}", i.name);
        let item = Item::new(rank::L2, format!("tag-rewrite {}", i.name), path, set(&now));
        out.add(item.unset(set("disable")).order(1).needs(interface_key(&i.name)).attribute());
    }
}

/// Reads the flags of ports of bridge domains.
fn switches(doc: &Doc<'_>, out: &mut Draft) {
    let mut ports: HashSet<&str> = HashSet::new();
    for table in [&["bridgedomains"][..], &["thalweg", "bridgedomains"]] {
        for (_, bridge) in doc.entries(table) {
            let list = bridge.node.get("interfaces").map_or(&[][..], Node::list);
            let special = ["bvi", "uu-fwd"].into_iter().filter_map(|key| bridge.node.get(key));
            ports.extend(list.iter().chain(special).filter_map(Node::text));
        }
    }
    for i in doc.interfaces() {
        let Some(found) = i.get("l2-input") else { continue };
        if !ports.contains(&*i.name) {
            let text = format!("`{}' is in no bridge domain of this document", i.name);
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        }
        for (word, _) in PORT_SWITCHES {
            if found.node.get(word).and_then(Node::bool) != Some(false) {
                continue;
            }
            let set = format!("set interface l2 {word} {}", i.name);
            let (key, path) =
                (format!("l2-input {} {word}", i.name), format!("{}.{word}", found.path));
            let item = Item::new(rank::L2, key, path, format!("{set} disable")).order(2);
            let item = item.unset(format!("{set} enable"));
            out.add(item.needs(format!("bridge port {}", i.name)).attribute());
        }
    }
}

fn dump_bridges(c: &Control, l2: &L2, out: &mut Dump<'_>) {
    let bridges = l2.bridges();
    let limit = bridges.default_learn_limit();
    if limit != LEARN_LIMIT {
        out.put(&["thalweg", "l2", "default-learn-limit"], u64::from(limit));
    }
    for (id, d) in bridges.list() {
        let name = format!("bd{id}");
        let path = ["bridgedomains", &name];
        let roles = [("bvi", d.bvi()), ("uu-fwd", d.unknown_forward())];
        for (key, port) in roles {
            let Some(port) = port else { continue };
            let (value, group) = (c.interface_name(port), d.group(port));
            let at = [path[0], path[1], key];
            match key == "bvi" && out.takes(&at, value.clone()) {
                true => out.put(&at, value.clone()),
                false => out.put(&["thalweg", "bridgedomains", &name, key], value.clone()),
            }
            if group != 0 {
                out.put(
                    &["thalweg", "interfaces", &value, "split-horizon-group"],
                    u64::from(group),
                );
            }
        }
        for (port, group) in d.ports().filter(|(port, _)| Some(*port) != d.bvi()) {
            let port = c.interface_name(port);
            out.push(&[path[0], path[1], "interfaces"], port.clone());
            if group != 0 {
                out.put(&["thalweg", "interfaces", &port, "split-horizon-group"], u64::from(group));
            }
        }
        for port in d.ports.keys() {
            for (word, _) in PORT_SWITCHES.iter().filter(|(_, f)| !d.flags(*port).has(*f)) {
                let name = c.interface_name(*port);
                out.put(&["thalweg", "interfaces", &name, "l2-input", word], false);
            }
        }
        let on = [d.learn, d.flood, d.flood_unknown, d.forward, d.arp_term, d.arp_ufwd];
        for ((key, _, usual), on) in SWITCHES.iter().zip(on) {
            if on != *usual {
                out.put(&[path[0], path[1], "settings", key], on);
            }
        }
        for (ip, mac) in d.arp_entries() {
            let at = ["thalweg", "bridgedomains", &name, "arp-entries", &ip.to_string()];
            out.put(&at, mac.to_string());
        }
        // A bridge domain without other settings still needs an entry.
        if d.mac_age != 0 || d.ports.is_empty() {
            out.put(&[path[0], path[1], "settings", "mac-age-minutes"], u64::from(d.mac_age));
        }
        if d.learn_limit != limit {
            let value = u64::from(d.learn_limit);
            out.put(&["thalweg", "bridgedomains", &name, "learn-limit"], value);
        }
        if !d.tag.is_empty() {
            out.put(&["thalweg", "bridgedomains", &name, "tag"], d.tag.clone());
        }
        // The schema's default is left out.
        let at = [path[0], path[1], "mtu"];
        if let Some(mtu) = common_mtu(c, d).filter(|mtu| *mtu != DEFAULT_MTU)
            // The ports say it, too; the schema's range is narrower.
            && out.takes(&at, mtu)
        {
            out.put(&at, mtu);
        }
    }
}

/// Returns the MTU that all ports of a bridge domain share.
fn common_mtu(c: &Control, d: &Domain) -> Option<u32> {
    let ports = d.ports().filter(|(port, _)| Some(*port) != d.bvi());
    let mut all = ports.filter_map(|(port, _)| Some(interface::view(c, port).ok()?.mtu.l3));
    let first = all.next()?;
    all.all(|mtu| mtu == first).then_some(first)
}

/// Configured MAC entries: bridge domain id, address, and entry text.
type StaticMacs = Vec<(u32, MacAddr, String)>;

/// Appends configured MAC entries from number `from` on to `found`; returns where to continue.
fn configured(c: &Control, from: u32, found: &mut StaticMacs) -> Option<u32> {
    let l2 = c.state::<L2>();
    let l2 = l2.borrow();
    let (some, next) = l2.bridges().addresses(from, AT_ONCE);
    let is_set = |a: &&Address| !matches!(a.origin, Origin::Learned | Origin::Bvi);
    for a in some.iter().filter(is_set) {
        let text = match a.origin {
            Origin::Filter => "filter".to_owned(),
            Origin::Static => format!("{} static", c.interface_name(a.port)),
            _ => c.interface_name(a.port),
        };
        found.push((a.bridge, a.mac, text));
    }
    next
}

fn one_bridge(doc: &Doc<'_>, name: &str, found: &Found<'_>, out: &mut Draft) {
    let id = name.strip_prefix("bd").and_then(|id| id.parse().ok());
    let Some(id) = id.filter(|id| (1..=MAX_BRIDGE_ID).contains(id)) else {
        let text = format!("bd and a number from 1 to {MAX_BRIDGE_ID} expected, not `{name}'");
        return out.problem(Problem::at(found.node, found.path.clone(), text));
    };
    let key = format!("bridge {name}");
    let item = Item::new(rank::L2, &key, &found.path, format!("create bridge-domain {id}"));
    out.add(item.unset(format!("create bridge-domain {id} del")));
    let mut add = |what: &str, path: String, set: String, back: String| {
        let item = Item::new(rank::L2, format!("{key} {what}"), path, set).unset(back);
        out.add(item.needs(&key).attribute());
    };
    for (setting, word, usual) in SWITCHES {
        let Some(f) = doc.at(&["bridgedomains", name, "settings", setting]) else { continue };
        if f.node.bool() == Some(!usual) {
            let set = |on| {
                let on = if on { "enable" } else { "disable" };
                format!("set bridge-domain {word} {id} {on}")
            };
            add(word, f.path, set(!usual), set(usual));
        }
    }
    let number = |path: &[&str]| doc.at(path).map(|f| (f.node.value.to_string(), f.path));
    if let Some((minutes, path)) = number(&["bridgedomains", name, "settings", "mac-age-minutes"])
        && minutes != "0"
    {
        let set = |n: &str| format!("set bridge-domain mac-age {id} {n}");
        add("mac-age", path, set(&minutes), set("0"));
    }
    let default = number(&["thalweg", "l2", "default-learn-limit"]);
    let built_in = LEARN_LIMIT.to_string();
    let default = default.map_or(built_in.clone(), |f| f.0);
    let limit = number(&["thalweg", "bridgedomains", name, "learn-limit"]);
    let (limit, path) = limit.unwrap_or_else(|| (default.clone(), found.path.clone()));
    // The default depends on the document: set for each bridge domain, it is the same in any.
    if limit != built_in || default != built_in {
        let set = |n: &str| format!("set bridge-domain learn-limit {id} {n}");
        add("learn-limit", path, set(&limit), set(&built_in));
    }
    let tag = number(&["thalweg", "bridgedomains", name, "tag"]);
    if let Some((tag, path)) = tag.filter(|(tag, _)| !tag.is_empty()) {
        let set = format!("set bridge-domain tag {id}");
        let item = Item::new(rank::L2, format!("{key} tag"), path, format!("{set} '{tag}'"));
        let item = item.unset(set).needs(&key).attribute();
        // A document may serve both programs: vppcfg's own tag is kept.
        out.add(if tag == VPPCFG { item.sticky() } else { item });
    }
    ports(doc, name, id, out);
    static_macs(doc, name, id, out);
    arp_entries(doc, name, id, out);
}

/// Addresses that a bridge domain answers for.
fn arp_entries(doc: &Doc<'_>, name: &str, id: u32, out: &mut Draft) {
    for (key, found) in doc.entries(&["thalweg", "bridgedomains", name, "arp-entries"]) {
        let Ok(ip) = key.parse::<IpAddr>() else {
            let text = format!("the IP address of a host expected, not `{key}'");
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        };
        let Some(mac) = found.node.text().and_then(mac).filter(|m| m.is_unicast()) else {
            let text = "a unicast MAC address expected".to_owned();
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        };
        let set = format!("set bridge-domain arp entry {id} {ip} {mac}");
        let item = Item::new(rank::L2, format!("arp entry {id} {ip}"), &found.path, &set).order(2);
        out.add(item.unset(format!("{set} del")).needs(format!("bridge {name}")));
    }
}

/// The router's own port, and that of unknown unicast frames.
fn special_ports(doc: &Doc<'_>, name: &str, id: u32, out: &mut Draft) {
    for key in ["bvi", "uu-fwd"] {
        let found = doc.at(&["thalweg", "bridgedomains", name, key]);
        let Some(found) = found.or_else(|| doc.at(&["bridgedomains", name, key])) else { continue };
        let Some(port) = found.node.text() else { continue };
        let Some(interface) = doc.interface(port) else {
            let text = format!("an interface of this document expected, not `{port}'");
            let problem = Problem::at(found.node, found.path, text);
            out.problem(problem.absent(interface_key(port)));
            continue;
        };
        out.add(port_item(interface, (name, id), &format!(" {key}"), found.path));
    }
}

/// The item of a port of a bridge domain; `role` stands behind its number.
fn port_item(port: &Interface<'_>, (name, id): (&str, u32), role: &str, path: String) -> Item {
    let group = port.get("split-horizon-group").map(|f| f.node.value.to_string());
    let group = group.filter(|g| g != "0").map(|g| format!(" {g}")).unwrap_or_default();
    let port = &port.name;
    let set = format!("set interface l2 bridge {port} {id}{role}{group}");
    let item = Item::new(rank::L2, format!("bridge port {port}"), path, set).order(1);
    let item = item.unset(format!("set interface l3 {port}")).recreate();
    item.needs(format!("bridge {name}")).needs(interface_key(port))
}

fn ports(doc: &Doc<'_>, name: &str, id: u32, out: &mut Draft) {
    special_ports(doc, name, id, out);
    let Some(list) = doc.at(&["bridgedomains", name, "interfaces"]) else { return };
    for (i, node) in list.node.list().iter().enumerate() {
        let path = format!("{}[{i}]", list.path);
        let Some(port) = node.text() else { continue };
        let Some(interface) = doc.interface(port) else {
            let text = format!("an interface of this document expected, not `{port}'");
            out.problem(Problem::at(node, path, text).absent(interface_key(port)));
            continue;
        };
        if interface.get("l2xc").is_some() {
            let text = format!("`{port}' is cross connected already (l2xc)");
            out.problem(Problem::at(node, path, text));
            continue;
        }
        same_mtu(doc, name, interface, node, &path, out);
        out.add(port_item(interface, (name, id), "", path));
    }
}

/// All ports must have the MTU of the bridge domain.
fn same_mtu(
    doc: &Doc<'_>,
    name: &str,
    port: &Interface<'_>,
    node: &Node,
    path: &str,
    out: &mut Draft,
) {
    let Some(bridge) = doc.at(&["bridgedomains", name, "mtu"]).and_then(|f| f.node.u32()) else {
        return;
    };
    let mtu = port.get("mtu").and_then(|f| f.node.u32()).unwrap_or(DEFAULT_MTU);
    if mtu != bridge {
        let text = format!(
            "`{}' has an MTU of {mtu}, and {name} one of {bridge}: make them equal",
            port.name
        );
        out.problem(Problem::at(node, path.to_owned(), text));
    }
}

fn static_macs(doc: &Doc<'_>, name: &str, id: u32, out: &mut Draft) {
    for (key, found) in doc.entries(&["thalweg", "bridgedomains", name, "l2fib"]) {
        let address = mac(key).filter(|m| m.is_unicast());
        let Some(address) = address else {
            let text = format!("a unicast MAC address expected, not `{key}'");
            out.problem(Problem::at(found.node, found.path, text));
            continue;
        };
        let Some(text) = found.node.text() else { continue };
        let set = format!("l2fib add {address} {id} {text}");
        let key = format!("l2fib {id} {address}");
        let item = Item::new(rank::L2, key, &found.path, set).order(2);
        let item = item.unset(format!("l2fib del {address} {id}")).needs(format!("bridge {name}"));
        let port = text.split_whitespace().next().filter(|p| *p != "filter");
        out.add(match port {
            Some(port) => item.needs(format!("bridge port {port}")).needs(interface_key(port)),
            None => item,
        });
    }
}
