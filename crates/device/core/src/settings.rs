//! Configuration of interfaces.

use crate::SwIfIndex;
use crate::command_line::{ENCAPSULATION as ENCAPSULATION_WORDS, tag_match};
use crate::interface::{
    InterfaceView, Interfaces, MAX_SECONDARY_MACS, MTU_RANGE, MtuOf, TagMatch, VlanTag,
    is_found_mac,
};
use std::collections::HashSet;
use thalweg_cli::Args;
use thalweg_config::declare::schema::VPPCFG;
use thalweg_config::declare::{
    Doc, Draft, Dump, Interface, Item, Kind, Name, Node, Problem, Rule, Section, Slices, Value,
    interface_key, is_loopback, mac, rank,
};
use thalweg_graph::stats::MAX_INTERFACES;
use thalweg_graph::{Control, RxMode};
use thalweg_wire::vlan::MAX_ID;

/// Section of interfaces, loopbacks and sinks.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

/// Indices that are reserved for interfaces to be created.
const RESERVED: [&str; 2] = ["thalweg", "reserved-indices"];

/// Key of what a sub-interface receives.
const ENCAPSULATION: &str = "encapsulation";

/// Default L3 MTU in bytes.
const DEFAULT_MTU: u32 = 1500;
/// Default device MTU of interfaces without hardware.
const DEFAULT_LINK_MTU: u32 = 9000;
const INDEX: Kind = Kind::Int(1, MAX_INTERFACES as i128 - 1);
const MTU: Kind = Kind::Int(MTU_RANGE.0 as i128, MTU_RANGE.1 as i128);
/// Protocol MTUs: key, CLI word, index in the table.
const PROTOCOLS: [(&str, &str, MtuOf); 3] = [
    ("mtu-ip4", "ip4", MtuOf::Ip4),
    ("mtu-ip6", "ip6", MtuOf::Ip6),
    ("mtu-mpls", "mpls", MtuOf::Mpls),
];

const RULES: &[Rule] = &[
    Rule::new("thalweg.reserved-indices", Kind::Named(Name::Any)),
    Rule::new("thalweg.reserved-indices.*", INDEX),
    Rule::new("thalweg.interfaces.*.index", INDEX),
    Rule::new("thalweg.interfaces.*.encapsulation", Kind::Other(words)),
    Rule::new("thalweg.interfaces.*.mac", Kind::Mac),
    Rule::new("thalweg.interfaces.*.secondary-macs", Kind::List(0, MAX_SECONDARY_MACS)),
    Rule::new("thalweg.interfaces.*.secondary-macs.[]", Kind::Mac),
    Rule::new("thalweg.interfaces.*.mtu", MTU),
    Rule::new("thalweg.interfaces.*.link-mtu", MTU),
    Rule::new("thalweg.interfaces.*.mtu-ip4", MTU),
    Rule::new("thalweg.interfaces.*.mtu-ip6", MTU),
    Rule::new("thalweg.interfaces.*.mtu-mpls", MTU),
    Rule::new("thalweg.interfaces.*.promiscuous", Kind::Bool),
    Rule::new("thalweg.interfaces.*.rx-mode", Kind::Other(rx_mode)),
    Rule::new("thalweg.interfaces.*.rx-placement", Kind::Named(Name::Number(0, u16::MAX as u64))),
    Rule::new("thalweg.interfaces.*.rx-placement.*", Kind::Int(0, u16::MAX as i128)),
    Rule::new("thalweg.interfaces.*.state", Kind::Word(&["up", "down"])),
    Rule::new("thalweg.interfaces.*.tag", Kind::Name(Name::Any)),
];

fn mode_word(value: &Value) -> Option<RxMode> {
    let Value::Text(word) = value else { return None };
    RxMode::ALL.into_iter().find(|m| m.name() == word)
}

fn rx_mode(value: &Value) -> Result<(), String> {
    let right = match value {
        Value::Map(map) => map
            .iter()
            .all(|(queue, mode)| queue.parse::<u16>().is_ok() && mode_word(&mode.value).is_some()),
        word => mode_word(word).is_some(),
    };
    let words = RxMode::ALL.map(RxMode::name).join(", ");
    let expected = || format!("one of {words}, or one for each queue such as {{0: polling}},");
    if right { Ok(()) } else { Err(expected()) }
}

/// Returns whether the device's MTU follows the L3 MTU: true for ports, as in vppcfg.
fn follows(name: &str, is_sub: bool) -> bool {
    !is_loopback(name) && !is_sub
}

impl Section<Control> for Settings {
    fn supports(&self) -> Vec<&'static str> {
        vec![
            "interfaces.*.mac",
            "interfaces.*.mtu",
            "interfaces.*.state",
            "interfaces.*.sub-interfaces.*.encapsulation.dot1q",
            "interfaces.*.sub-interfaces.*.encapsulation.dot1ad",
            "interfaces.*.sub-interfaces.*.encapsulation.inner-dot1q",
            "interfaces.*.sub-interfaces.*.encapsulation.exact-match",
            "loopbacks.*.mac",
            "loopbacks.*.mtu",
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

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        // Without any index, the router has written interfaces in the order of their indices.
        let all = doc.interfaces();
        let in_order = doc.is_saved() && all.iter().all(|i| i.get("index").is_none());
        for i in all {
            if in_order && i.name != "local0" {
                out.add(index_item(&i.name, i.number + 1, String::new()).implicit());
            }
            create(i, out);
            mac_address(i, out);
            secondary_macs(i, out);
            mtu(i, out);
            switches(i, out);
        }
        let named: HashSet<&str> = doc.interfaces().iter().map(|i| &*i.name).collect();
        // An interface's own key counts if it is described, too.
        let reserved = doc.entries(&RESERVED).into_iter().filter(|(name, _)| !named.contains(name));
        for (name, found) in reserved {
            let set = |n: &str| format!("set interface index {name} {n}");
            let key = format!("reserved index {name}");
            let item =
                Item::new(rank::BEFORE_CREATE, key, found.path, set(&found.node.value.to_string()));
            // An entry that reserves an index for an interface of the document leaves this one.
            out.add(item.unset(set("none")).recreate().needs(format!("index {name}")));
        }
    }
}

/// Interfaces that are written at a time.
const AT_ONCE: usize = 128;
/// Interfaces that are looked at at a time.
const LOOKED_AT: usize = 1024;

/// Writes something of each interface, in slices. The ones that there are are looked at when their
/// turn comes.
pub fn each_interface(
    mut each: impl FnMut(&Control, &InterfaceView, &mut Dump<'_>) + Send + 'static,
) -> Slices<Control> {
    let mut next = SwIfIndex(0);
    Box::new(move |c, out| {
        let all = c.state::<Interfaces>();
        let all = all.borrow();
        let end = SwIfIndex(next.0 + AT_ONCE as u32);
        (next.0..end.0).filter_map(|i| all.get(SwIfIndex(i))).for_each(|v| each(c, v, out));
        next = end;
        next.index() >= all.end()
    })
}

/// Writes interfaces in slices: those that are there when they are looked at.
fn slices() -> Slices<Control> {
    let (mut look, mut next) = (Look::default(), 0);
    Box::new(move |c, out| {
        let all = c.state::<Interfaces>();
        let all = all.borrow();
        if look.go_on(&all) {
            return false;
        }
        look.hidden.drain(..).for_each(|name| out.hide(&name));
        let some = look.shown.iter().skip(next).take(AT_ONCE);
        let is_in_order = !look.is_disordered;
        some.filter_map(|sw_if| all.get(*sw_if)).for_each(|v| dump(c, &all, v, is_in_order, out));
        next += AT_ONCE;
        let is_done = next >= look.shown.len();
        if is_done {
            for (name, index) in all.reserved() {
                out.put(&[RESERVED[0], RESERVED[1], name], index.get());
            }
        }
        is_done
    })
}

/// A look at all interfaces.
#[derive(Default)]
struct Look {
    next: SwIfIndex,
    shown: Vec<SwIfIndex>,
    /// Names of those that the setting of another one makes, which says so.
    hidden: Vec<String>,
    /// They have other indices than they would have by the order of a document.
    is_disordered: bool,
    /// Place of the last one in a document.
    last: Place,
}

/// The place of an interface in a document, which lists loopbacks behind others, then
/// sub-interfaces by parent, and those of loopbacks last.
type Place = (u8, bool, SwIfIndex);

impl Look {
    /// Looks at some more; returns false at the end.
    fn go_on(&mut self, all: &Interfaces) -> bool {
        if self.next.index() >= all.end() {
            return false;
        }
        let end = SwIfIndex(self.next.0 + LOOKED_AT as u32);
        (self.next.0..end.0).filter_map(|i| all.get(SwIfIndex(i))).for_each(|v| self.at(all, v));
        self.next = end;
        true
    }

    fn at(&mut self, all: &Interfaces, v: &InterfaceView) {
        let device = all.device(v.parent.unwrap_or(v.sw_if));
        if device.is_some_and(|device| device.is_of_another()) {
            self.hidden.push(v.name.clone());
            return;
        }
        self.shown.push(v.sw_if);
        if v.sw_if == SwIfIndex(0) {
            return;
        }
        let is_loopback = |v: &InterfaceView| v.dev_type == "Loopback";
        let place = match (v.sub, v.parent) {
            (Some(_), Some(parent)) => (2, all.get(parent).is_some_and(is_loopback), parent),
            _ => (u8::from(is_loopback(v)), false, SwIfIndex(0)),
        };
        // Tunnels are made when what they lead over is there, and so after others.
        let is_tunnel = v.sub.is_none() && v.kind == crate::interface::Kind::Tunnel;
        let is_next = v.sw_if.index() == self.shown.len() - 1 && place >= self.last;
        self.is_disordered |= is_tunnel || !is_next;
        self.last = place;
    }
}

/// Writes an interface. `is_in_order`: its index is left out.
fn dump(c: &Control, all: &Interfaces, v: &InterfaceView, is_in_order: bool, out: &mut Dump<'_>) {
    let name = v.name.as_str();
    let local = v.sw_if == SwIfIndex(0);
    match (v.sub, v.parent.and_then(|parent| all.get(parent))) {
        _ if local => {}
        (Some((id, matches)), Some(parent)) => {
            out.sub_interface(name, &parent.name, id);
            dump_encapsulation(&parent.name, name, id, matches, out);
        }
        _ => out.interface(name),
    }
    match (local, is_in_order) {
        (true, _) => {}
        // A default is left out, but restored.
        (false, true) => {
            let item = index_item(name, v.sw_if, String::new());
            let place = ["thalweg", "interfaces", name, "index"];
            out.implicit(item, &place, v.sw_if.get());
        }
        (false, false) => out.set(name, "index", v.sw_if.get()),
    }
    if v.ethernet && v.sub.is_none() {
        out.set(name, "mac", v.mac.to_string());
    }
    for mac in v.secondary_macs.iter().filter(|mac| !is_found_mac(c, v.sw_if, **mac)) {
        out.push(&["thalweg", "interfaces", name, "secondary-macs"], mac.to_string());
    }
    let link = if follows(name, false) { v.mtu.l3 } else { DEFAULT_LINK_MTU };
    if !local {
        out.set(name, "mtu", v.mtu.l3);
    }
    if !local && v.sub.is_none() && v.link_mtu != link {
        out.set(name, "link-mtu", v.link_mtu);
    }
    for (key, _, place) in PROTOCOLS {
        if v.mtu.get(place) != 0 {
            out.set(name, key, v.mtu.get(place));
        }
    }
    if !v.tag.is_empty() {
        out.set(name, "tag", v.tag.as_str());
    }
    if v.promiscuous {
        out.set(name, "promiscuous", true);
    }
    match (local, v.admin_up) {
        (true, true) => out.set(name, "state", "up"),
        (false, false) => out.set(name, "state", "down"),
        _ => {}
    }
    let Some(device) = all.device(v.sw_if) else { return };
    let modes: Vec<(u32, RxMode)> = device.rx_queues().iter().map(|q| (q.queue, q.mode)).collect();
    dump_modes(name, &modes, out);
    for queue in device.rx_queues().iter().filter(|q| q.pinned) {
        let path = ["thalweg", "interfaces", name, "rx-placement", &queue.queue.to_string()];
        out.put(&path, queue.worker as u64);
    }
}

/// An interface's index, as a property of the interface.
fn index_item(name: &str, index: impl std::fmt::Display, path: String) -> Item {
    let set = format!("set interface index {name} {index}");
    Item::new(rank::BEFORE_CREATE, format!("index {name}"), path, set)
        .with(interface_key(name))
        .claims(format!("index {index}"))
}

/// Worker of each receive queue, where the document names it.
fn doc_placement(i: &Interface<'_>) -> Vec<(u32, u32)> {
    let Some(found) = i.get("rx-placement") else { return Vec::new() };
    let each = found.node.entries();
    each.filter_map(|(queue, worker)| Some((queue.parse().ok()?, worker.u32()?))).collect()
}

fn dump_modes(name: &str, modes: &[(u32, RxMode)], out: &mut Dump<'_>) {
    let Some((_, first)) = modes.first() else { return };
    if modes.iter().all(|(_, mode)| mode == first) {
        if *first != RxMode::default() {
            out.set(name, "rx-mode", first.name());
        }
        return;
    }
    for (queue, mode) in modes.iter().filter(|(_, m)| *m != RxMode::default()) {
        out.put(&["thalweg", "interfaces", name, "rx-mode", &queue.to_string()], mode.name());
    }
}

/// Returns the frames of a sub-interface that names none.
fn usual(id: u32) -> Option<TagMatch> {
    let id = u16::try_from(id).ok().filter(|id| (1..=MAX_ID.0).contains(id))?;
    Some(TagMatch::Outer { tag: VlanTag::dot1q(id), exact: true })
}

/// Writes what a sub-interface receives: by the schema's keys if it has them, or else in the words
/// of `create sub-interfaces`.
fn dump_encapsulation(parent: &str, name: &str, id: u32, of: TagMatch, out: &mut Dump<'_>) {
    let (outer, inner, exact) = match of {
        // The schema has no sub-interfaces of loopbacks.
        _ if is_loopback(parent) => return out.set(name, ENCAPSULATION, of.to_string()),
        of if usual(id) == Some(of) => return,
        TagMatch::Outer { tag, exact } => (tag, None, exact),
        TagMatch::Pair { outer, inner, exact } => (outer, Some(inner), exact),
        _ => return out.set(name, ENCAPSULATION, of.to_string()),
    };
    let id = id.to_string();
    let mut put = |key: &str, value: Value| {
        out.put(&["interfaces", parent, "sub-interfaces", &id, ENCAPSULATION, key], value);
    };
    put(&outer.kind.to_string(), u32::from(outer.id.0).into());
    if let Some(inner) = inner {
        put("inner-dot1q", u32::from(inner.id.0).into());
    }
    if exact {
        put("exact-match", true.into());
    }
}

/// Frames that a sub-interface receives, in the words of `create sub-interfaces`: text of our own
/// keys, or a map of the schema.
fn encapsulation(i: &Interface<'_>, id: &str, out: &mut Draft) -> Option<String> {
    let usual = || Some(format!("dot1q {id} exact-match"));
    let Some(found) = i.get(ENCAPSULATION) else {
        let number = id.parse().ok()?;
        if self::usual(number).is_none() {
            let text = format!("an `encapsulation' is missing: {id} is no VLAN id");
            let node = i.node().cloned().unwrap_or_default();
            out.problem(Problem::at(&node, i.path(""), text));
            return None;
        }
        return usual();
    };
    if let Some(words) = found.node.text() {
        return read_words(words).map(|of| of.to_string());
    }
    let number = |key| found.node.get(key).and_then(Node::u32);
    let exact = found.node.get("exact-match").and_then(Node::bool);
    let (kind, outer) = match (number("dot1q"), number("dot1ad")) {
        (Some(_), Some(_)) => {
            let text = "one of dot1q and dot1ad expected, not both";
            out.problem(Problem::at(found.node, found.path, text));
            return None;
        }
        (None, None) if found.node.entries().next().is_none() => return usual(),
        (None, None) => {
            let text = "dot1q or dot1ad is missing";
            out.problem(Problem::at(found.node, found.path, text));
            return None;
        }
        (Some(id), None) => ("dot1q", id),
        (None, Some(id)) => ("dot1ad", id),
    };
    let inner = number("inner-dot1q");
    if [Some(outer), inner].contains(&Some(u32::from(MAX_ID.0) + 1)) {
        let text = format!("VLAN ids from 1 to {MAX_ID} expected: 4095 is reserved (IEEE 802.1Q)");
        out.problem(Problem::at(found.node, found.path, text));
        return None;
    }
    let mut words = format!("{kind} {outer}");
    if let Some(inner) = inner {
        words += &format!(" inner-dot1q {inner}");
    }
    if exact.unwrap_or(false) {
        words += " exact-match";
    }
    Some(words)
}

fn create_sub(i: &Interface<'_>, (parent, id): (&str, &str), out: &mut Draft) {
    out.claim(&i.name);
    let Some(words) = encapsulation(i, id, out) else { return };
    // The usual one needs no words: a range makes the same.
    let command = format!("create sub-interfaces {parent} {id} {words}");
    let item = Item::new(rank::CREATE, interface_key(&i.name), i.path(""), command)
        .unset(format!("delete sub-interface {}", i.name));
    out.add(item.order(i.number).recreate().needs(interface_key(parent)));
}

fn words(value: &Value) -> Result<(), String> {
    let Value::Text(text) = value else { return Err(format!("a text: {ENCAPSULATION_WORDS}")) };
    read_words(text).map(drop).ok_or_else(|| ENCAPSULATION_WORDS.to_owned())
}

fn read_words(text: &str) -> Option<TagMatch> {
    let mut args = Args::parse(text).ok()?;
    tag_match(&mut args).ok()?
}

fn create(i: &Interface<'_>, out: &mut Draft) {
    let name = &*i.name;
    if let Some(index) = i.get("index") {
        out.add(index_item(name, &index.node.value, index.path).order(i.number));
    }
    if let Some(sub) = i.sub() {
        return create_sub(i, sub, out);
    }
    if name == "local0" {
        out.claim(name);
        return;
    }
    let instance = |prefix: &str| {
        let digits = name.strip_prefix(prefix)?;
        let n: u32 = digits.parse().ok().filter(|n| *n <= 16_383)?;
        (n.to_string() == digits).then_some(n)
    };
    let (create, delete) = match ["loop", "sink", "bvi"].map(instance) {
        [Some(n), _, _] => {
            (format!("create loopback interface instance {n}"), "delete loopback interface intfc")
        }
        [_, Some(n), _] => {
            (format!("create sink interface instance {n}"), "delete loopback interface intfc")
        }
        [_, _, Some(n)] => (format!("bvi create instance {n}"), "bvi delete"),
        _ => return,
    };
    out.claim(name);
    let item = Item::new(rank::CREATE, interface_key(name), i.path(""), create)
        .unset(format!("{delete} {name}"));
    out.add(item.order(i.number).recreate());
}

fn mac_address(i: &Interface<'_>, out: &mut Draft) {
    let Some(found) = i.get("mac") else { return };
    if i.sub().is_some() {
        let text = "a sub-interface has its parent's MAC address: set that";
        return out.problem(Problem::at(found.node, found.path, text));
    }
    let Some(address) = found.node.text().and_then(mac) else { return };
    if !address.is_unicast() {
        let text = "a unicast MAC address expected, not a multicast or zero address";
        return out.problem(Problem::at(found.node, found.path, text));
    }
    let set = format!("set interface mac address {} {address}", i.name);
    let item = Item::new(rank::MAC, format!("mac {}", i.name), found.path, set);
    out.add(item.needs(interface_key(&i.name)).attribute().sticky());
}

fn secondary_macs(i: &Interface<'_>, out: &mut Draft) {
    let Some(found) = i.get("secondary-macs") else { return };
    if i.sub().is_some() {
        let text = "a sub-interface has its parent's MAC addresses: set those";
        return out.problem(Problem::at(found.node, found.path, text));
    }
    for (at, node) in found.node.list().iter().enumerate() {
        let path = format!("{}[{at}]", found.path);
        let Some(address) = node.text().and_then(mac) else { continue };
        if !address.is_unicast() {
            let text = "a unicast MAC address expected, not a multicast or zero address";
            out.problem(Problem::at(node, path, text));
            continue;
        }
        let set = format!("set interface secondary-mac-address {} {address}", i.name);
        let key = format!("secondary-mac {} {address}", i.name);
        let item = Item::new(rank::MAC, key, path, format!("{set} add"));
        out.add(item.unset(format!("{set} del")).needs(interface_key(&i.name)));
    }
}

fn mtu(i: &Interface<'_>, out: &mut Draft) {
    let (name, is_sub) = (&*i.name, i.sub().is_some());
    let follows = |name| follows(name, is_sub);
    let bytes = |key: &str| i.get(key).and_then(|f| Some((f.node.u32()?, f.path)));
    // A TAP that is made and not described as an interface stays as it is, like in vppcfg.
    if name == "local0" || i.node().is_none() {
        return;
    }
    let (l3, path) = bytes("mtu").unwrap_or_else(|| (DEFAULT_MTU, i.path("")));
    let link_key = format!("link-mtu {name}");
    let same = follows(name).then(|| (l3, path.clone()));
    let link = bytes("link-mtu").filter(|_| !is_sub).or(same);
    let link_bytes = link.as_ref().map(|l| l.0);
    if let Some((link, path)) = link {
        let set = format!("set interface mtu {link} {name}");
        let mut item = Item::new(rank::LINK_MTU, &link_key, path, set);
        if !follows(name) {
            item = item.unset(format!("set interface mtu {DEFAULT_LINK_MTU} {name}"));
        }
        out.add(item.needs(interface_key(name)).attribute());
    }
    if !follows(name) || Some(l3) != link_bytes {
        let set = format!("set interface mtu packet {l3} {name}");
        let mut item = Item::new(rank::MTU, format!("mtu {name}"), path, set);
        if let Some(link) = link_bytes {
            item = item.unset(format!("set interface mtu packet {link} {name}"));
        }
        out.add(item.needs(interface_key(name)).needs(link_key).attribute());
    }
    for (key, word, _) in PROTOCOLS {
        let Some((bytes, path)) = bytes(key) else { continue };
        let set = format!("set interface mtu {word} {bytes} {name}");
        let item = Item::new(rank::MTU, format!("{key} {name}"), path, set)
            .unset(format!("set interface mtu {word} 0 {name}"));
        out.add(item.needs(interface_key(name)).attribute());
    }
}

fn switches(i: &Interface<'_>, out: &mut Draft) {
    let name = &*i.name;
    if let Some(found) = i.get("promiscuous").filter(|f| f.node.bool() == Some(true)) {
        let set = format!("set interface promiscuous on {name}");
        let item = Item::new(rank::DRIVER, format!("promiscuous {name}"), found.path, set)
            .unset(format!("set interface promiscuous off {name}"));
        out.add(item.needs(interface_key(name)).attribute());
    }
    if let Some(found) = i.get("tag") {
        let set = format!("set interface tag {name} {}", found.node.value);
        let item = Item::new(rank::DRIVER, format!("tag {name}"), found.path, set)
            .unset(format!("clear interface tag {name}"));
        let item = item.needs(interface_key(name)).attribute();
        // A document may serve both programs: vppcfg's own tag is kept.
        out.add(if found.node.text() == Some(VPPCFG) { item.sticky() } else { item });
    }
    if let Some(found) = i.get("rx-mode") {
        // The number of queues is set by the driver's own key.
        let queues = i.get("rx-queues").and_then(|f| f.node.u32()).unwrap_or(1).clamp(1, 64);
        let modes: Vec<(u32, RxMode)> = match mode_word(&found.node.value) {
            Some(mode) => (0..queues).map(|queue| (queue, mode)).collect(),
            None => {
                let each = found.node.entries();
                each.filter_map(|(q, mode)| Some((q.parse().ok()?, mode_word(&mode.value)?)))
                    .collect()
            }
        };
        for (queue, mode) in modes.into_iter().filter(|(_, m)| *m != RxMode::default()) {
            let set = |mode: RxMode| {
                format!("set interface rx-mode {name} queue {queue} {}", mode.name())
            };
            let key = format!("rx-mode {name} {queue}");
            let item = Item::new(rank::DRIVER, key, found.path.clone(), set(mode))
                .unset(set(RxMode::default()));
            out.add(item.needs(interface_key(name)).attribute());
        }
    }
    for (queue, worker) in doc_placement(i) {
        let set = |to: &str| format!("set interface rx-placement {name} queue {queue} {to}");
        let path =
            i.get("rx-placement").map_or_else(String::new, |f| format!("{}.{queue}", f.path));
        let key = format!("rx-placement {name} {queue}");
        let item =
            Item::new(rank::DRIVER, key, path, set(&format!("worker {worker}"))).unset(set("auto"));
        out.add(item.needs(interface_key(name)).attribute());
    }
    let state = i.get("state");
    let default = if name == "local0" || i.node().is_none() { "down" } else { "up" };
    if state.as_ref().and_then(|f| f.node.text()).unwrap_or(default) == "up" {
        let path = state.map_or_else(|| i.path(""), |f| f.path);
        let set = format!("set interface state {name} up");
        let item = Item::new(rank::STATE, format!("state {name}"), path, set)
            .unset(format!("set interface state {name} down"));
        out.add(item.order(i.number).needs(interface_key(name)));
    }
}
