//! Configuration of TAPs: the schema's keys below `taps`, and Thalweg's own below `thalweg.taps`.

use crate::config::{Flags, MAX_ID, TapConfig};
use crate::device::{Tap, Taps};
use std::rc::Rc;
use thalweg_config::declare::{
    Doc, Draft, Dump, Found, Interface, Item, Kind, Name, Part, Problem, Rule, Section, Value,
    interface_key, rank,
};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Section of TAPs.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const NAME: Kind = Kind::Name(Name::Any);
const RING: Kind = Kind::Int(1, 32_768);

const RULES: &[Rule] = &[
    Rule::new("thalweg.taps", Kind::Named(Name::Any)),
    Rule::new("thalweg.taps.*", Kind::Keys),
    Rule::new("thalweg.taps.*.id", Kind::Int(0, MAX_ID as i128)),
    Rule::new("thalweg.taps.*.host-name", NAME),
    Rule::new("thalweg.taps.*.host-mac", Kind::Mac),
    Rule::new("thalweg.taps.*.host-mtu", Kind::Int(68, 65_521)),
    Rule::new("thalweg.taps.*.host-bridge", NAME),
    Rule::new("thalweg.taps.*.host-namespace", NAME),
    Rule::new("thalweg.taps.*.host-ip4-address", Kind::Address),
    Rule::new("thalweg.taps.*.host-ip4-gateway", Kind::Ip),
    Rule::new("thalweg.taps.*.host-ip6-address", Kind::Address),
    Rule::new("thalweg.taps.*.host-ip6-gateway", Kind::Ip),
    Rule::new("thalweg.taps.*.rx-ring-size", RING),
    Rule::new("thalweg.taps.*.tx-ring-size", RING),
    Rule::new("thalweg.taps.*.tun", Kind::Bool),
    Rule::new("thalweg.taps.*.gso", Kind::Bool),
    Rule::new("thalweg.taps.*.gro-coalesce", Kind::Bool),
    Rule::new("thalweg.taps.*.csum-offload", Kind::Bool),
    Rule::new("thalweg.taps.*.persist", Kind::Bool),
    Rule::new("thalweg.taps.*.attach", Kind::Bool),
    Rule::new("thalweg.taps.*.packed", Kind::Bool),
    Rule::new("thalweg.taps.*.in-order", Kind::Bool),
    Rule::new("thalweg.taps.*.consistent-qp", Kind::Bool),
];

/// A value: Thalweg's key, the schema's steps below a TAP, the command's word.
struct Key {
    ours: &'static str,
    theirs: Option<&'static [&'static str]>,
    word: &'static str,
}

const fn key(
    ours: &'static str,
    theirs: Option<&'static [&'static str]>,
    word: &'static str,
) -> Key {
    Key { ours, theirs, word }
}

const KEYS: &[Key] = &[
    key("host-name", Some(&["host", "name"]), "host-if-name"),
    key("host-namespace", Some(&["host", "namespace"]), "host-ns"),
    key("host-mac", Some(&["host", "mac"]), "host-mac-addr"),
    key("host-mtu", Some(&["host", "mtu"]), "host-mtu-size"),
    key("host-bridge", Some(&["host", "bridge"]), "host-bridge"),
    key("host-ip4-address", None, "host-ip4-addr"),
    key("host-ip4-gateway", None, "host-ip4-gw"),
    key("host-ip6-address", None, "host-ip6-addr"),
    key("host-ip6-gateway", None, "host-ip6-gw"),
    key("rx-ring-size", Some(&["rx-ring-size"]), "rx-ring-size"),
    key("tx-ring-size", Some(&["tx-ring-size"]), "tx-ring-size"),
];

/// Keys that stand with the interface, and their words.
const QUEUES: [(&str, &str); 2] = [("rx-queues", "num-rx-queues"), ("tx-queues", "num-tx-queues")];

const OURS: [&str; 2] = ["thalweg", "taps"];

/// Values of a TAP in the order of [`KEYS`].
fn values(config: &TapConfig) -> Vec<Option<Value>> {
    let host = &config.host;
    let text = |t: &Option<String>| t.as_deref().map(Value::from);
    let prefix = |ip: &dyn std::fmt::Display, len: u8| Value::from(format!("{ip}/{len}"));
    vec![
        text(&host.name),
        text(&host.namespace),
        host.mac.map(|m| m.to_string().into()),
        host.mtu.map(Value::from),
        text(&host.bridge),
        host.ip4.map(|(ip, len)| prefix(&ip, len)),
        host.ip4_gw.map(|ip| ip.to_string().into()),
        host.ip6.map(|(ip, len)| prefix(&ip, len)),
        host.ip6_gw.map(|ip| ip.to_string().into()),
        config.rx_ring.map(|n| u32::from(n).into()),
        config.tx_ring.map(|n| u32::from(n).into()),
    ]
}

/// Returns the number in a name such as `tap7`.
fn number(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    let number: u32 = digits.parse().ok().filter(|n| *n <= MAX_ID)?;
    (number.to_string() == digits).then_some(number)
}

fn dump(tap: &Tap, out: &mut Dump<'_>) {
    let (name, config) = (tap.name.as_str(), &tap.config);
    out.interface(name);
    let is_tun = config.flags.has(Flags::TUN);
    // The schema knows TAPs by the names that VPP gives them, each with a device that it can name.
    let host_name = config.host.name.as_deref().unwrap_or_default();
    let in_schema = !is_tun
        && number(name, "tap").is_some()
        && out.takes(&["taps", name, "host", "name"], host_name);
    for (key, value) in KEYS.iter().zip(values(config)) {
        let Some(value) = value else { continue };
        let theirs: Vec<&str> =
            ["taps", name].into_iter().chain(key.theirs.into_iter().flatten().copied()).collect();
        if in_schema && key.theirs.is_some() && out.takes(&theirs, value.clone()) {
            out.put(&theirs, value);
        } else {
            out.put(&[OURS[0], OURS[1], name, key.ours], value);
        }
    }
    let usual = if is_tun { "tun" } else { "tap" };
    if number(name, usual) != Some(tap.id) {
        out.put(&[OURS[0], OURS[1], name, "id"], tap.id);
    }
    for (word, flag) in Flags::WORDS {
        if config.flags.has(flag) {
            out.put(&[OURS[0], OURS[1], name, word], true);
        }
    }
    for ((key, _), queues) in QUEUES.iter().zip([config.rx_queues, config.tx_queues]) {
        if queues != 1 {
            out.set(name, key, u32::from(queues));
        }
    }
}

impl Section<Control> for Settings {
    fn supports(&self) -> Vec<&'static str> {
        vec![
            "taps.*.host.name",
            "taps.*.host.mac",
            "taps.*.host.mtu",
            "taps.*.host.bridge",
            "taps.*.host.namespace",
            "taps.*.rx-ring-size",
            "taps.*.tx-ring-size",
        ]
    }

    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        for (_, tap) in Taps::all(c).into_iter().filter(|(_, t)| t.config.owner.is_none()) {
            dump(&tap, out);
        }
    }

    fn missing(&self, c: &Control) -> Vec<Part> {
        let is_away = |(_, tap): &(SwIfIndex, Rc<Tap>)| tap.config.owner.is_none() && tap.is_away();
        let part = |(_, tap): (SwIfIndex, Rc<Tap>)| {
            let why = format!("{}; it is made again when that is possible", tap.why_away());
            Part::missing(format!("taps.{}", tap.name), why)
        };
        Taps::all(c).into_iter().filter(is_away).map(part).collect()
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        let is_tap = |name: &str| {
            doc.at(&["taps", name]).is_some() || doc.at(&[OURS[0], OURS[1], name]).is_some()
        };
        for i in doc.interfaces() {
            if i.sub().is_none() && is_tap(&i.name) {
                item(doc, i, out);
            } else if !i.name.starts_with("host-") {
                foreign(i, out);
            }
        }
    }
}

/// Reports numbers of queues of an interface that has none.
fn foreign(i: &Interface<'_>, out: &mut Draft) {
    for (key, _) in QUEUES {
        if let Some(found) = i.get(key) {
            let text = "only a host interface or a TAP has this setting";
            out.problem(Problem::at(found.node, found.path, text));
        }
    }
}

fn item(doc: &Doc<'_>, i: &Interface<'_>, out: &mut Draft) {
    let name = &*i.name;
    let own = |key: &str| doc.at(&[OURS[0], OURS[1], name, key]);
    let is_on = |key: &str| own(key).is_some_and(|f| f.node.bool() == Some(true));
    let theirs = |key: &Key| -> Option<Found<'_>> {
        let steps: Vec<&str> =
            ["taps", name].into_iter().chain(key.theirs?.iter().copied()).collect();
        doc.at(&steps)
    };
    out.claim(name);
    let is_tun = is_on("tun");
    let usual = number(name, if is_tun { "tun" } else { "tap" });
    let id = own("id").and_then(|f| f.node.u32()).or(usual);
    let mut command = String::from("create tap");
    if let Some(id) = id {
        command += &format!(" id {id}");
    }
    if usual.is_none() || usual != id {
        command += &format!(" if-name {name}");
    }
    for key in KEYS {
        if let Some(found) = own(key.ours).or_else(|| theirs(key)) {
            command += &format!(" {} {}", key.word, found.node.value);
        }
    }
    for (key, word) in QUEUES {
        if let Some(n) = i.get(key).and_then(|f| f.node.u32()).filter(|n| *n != 1) {
            command += &format!(" {word} {n}");
        }
    }
    for (word, _) in Flags::WORDS.iter().filter(|(word, _)| is_on(word)) {
        command += &format!(" {word}");
    }
    let place = if doc.at(&["taps", name]).is_some() { "taps" } else { "thalweg.taps" };
    let item = Item::new(rank::CREATE, interface_key(name), format!("{place}.{name}"), command)
        .unset(format!("delete tap {name}"));
    out.add(item.order(i.number).recreate());
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_config::declare::{Catalog, Document};

    fn commands(text: &str) -> String {
        let catalog: Catalog<Control> = Catalog::new(vec![&SETTINGS]).unwrap();
        match catalog.read("f", text) {
            Ok(document) => {
                let plan = Document::default().plan_to(&document);
                plan.commands().collect::<Vec<_>>().join("\n")
            }
            Err(problems) => problems.to_string(),
        }
    }

    #[test]
    fn the_schema_becomes_one_command() {
        assert_eq!(
            commands(
                "taps:\n  tap7:\n    host: {name: vpp7, mac: \"02:00:00:00:00:02\", mtu: 9000, \
                 bridge: br0, namespace: lab}\n    rx-ring-size: 512\n    tx-ring-size: 1024\n"
            ),
            "create tap id 7 host-if-name vpp7 host-ns lab host-mac-addr 02:00:00:00:00:02 \
             host-mtu-size 9000 host-bridge br0 rx-ring-size 512 tx-ring-size 1024"
        );
    }

    #[test]
    fn own_keys_become_words() {
        assert_eq!(
            commands(
                "thalweg:\n  taps:\n    tun3: {tun: true, gso: true, host-name: ppp3, \
                 host-ip4-address: 192.0.2.1/24, host-ip6-gateway: \"2001:db8::1\"}\n"
            ),
            "create tap id 3 host-if-name ppp3 host-ip4-addr 192.0.2.1/24 host-ip6-gw \
             2001:db8::1 gso tun"
        );
        assert_eq!(
            commands("thalweg:\n  taps:\n    lan: {id: 3, attach: true, host-name: t3}\n"),
            "create tap id 3 if-name lan host-if-name t3 attach"
        );
        // Other names than VPP's, whatever they look like.
        assert_eq!(
            commands("thalweg:\n  taps:\n    tap03: {tun: false}\n"),
            "create tap if-name tap03"
        );
    }
}
