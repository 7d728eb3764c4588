//! Configuration of NAT44.

use crate::cli_args::{self, PoolWords};
use crate::mapping_words::{Family, MappingWords, Outside, table};
use crate::state::{Address, MAX_ADDRESSES, MAX_SESSIONS, SESSIONS};
use crate::{Nat44, Timeouts};
use std::path::Path;
use thalweg_cli::CliError;
use thalweg_config::declare::{
    Doc, Draft, Dump, Found, Item, Kind, Rule, Section, Value, file_path, interface_key, rank,
};
use thalweg_engine::setting::{Rare, read_words};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_wire::nat::tuple::MAX_TABLE;

/// The configuration section of NAT44.
pub(crate) struct Translation;

pub(crate) static SECTION: Translation = Translation;

/// A value of NAT44, if it is enabled.
pub(crate) fn tuned<T>(c: &Control, of: impl FnOnce(&Nat44) -> T) -> Option<T> {
    let nat = c.state::<Nat44>();
    let nat = nat.borrow();
    nat.sessions().map(|_| of(&nat))
}

/// Properties that settings of NAT44 share: they need it, and come before addresses.
pub(crate) const fn tuning<V>() -> Rare<V> {
    Rare { needs: Some(ENABLED), order: 1, ..Rare::NONE }
}

/// Names a file as a thing that one setting has.
pub(crate) fn file_claim(path: &Path) -> String {
    format!("file {}", path.display())
}

const ROOT: [&str; 2] = ["thalweg", "nat44"];
const ENABLED: &str = "nat44";
/// Roles of an interface; the second half with `output-feature`.
const SIDES: [&str; 6] =
    ["in", "out", "in out", "in output-feature", "out output-feature", "in out output-feature"];

const RULES: &[Rule] = &[
    Rule::new("thalweg.nat44", Kind::Keys),
    Rule::new("thalweg.nat44.sessions", Kind::Int(1, MAX_SESSIONS as i128)),
    Rule::new("thalweg.nat44.inside-vrf", Kind::Int(0, MAX_TABLE as i128)),
    Rule::new("thalweg.nat44.outside-vrf", Kind::Int(0, MAX_TABLE as i128)),
    Rule::new("thalweg.nat44.sessions-per-host", Kind::Int(1, u32::MAX as i128)),
    Rule::new("thalweg.nat44.session-limits", Kind::List(0, crate::state::MAX_LIMITS)),
    Rule::new("thalweg.nat44.session-limits.[]", Kind::Other(|value| limit(value).map(drop))),
    Rule::new("thalweg.nat44.vrf-tables", Kind::List(0, crate::state::MAX_VRFS)),
    Rule::new("thalweg.nat44.vrf-tables.[]", Kind::Other(vrf_line)),
    Rule::new("thalweg.nat44.save", Kind::Keys),
    Rule::required("thalweg.nat44.save.file", Kind::Other(file)),
    Rule::required("thalweg.nat44.save.every", Kind::Int(1, 86_400)),
    Rule::new("thalweg.nat44.timeouts", Kind::Keys),
    Rule::new("thalweg.nat44.timeouts.udp", Kind::Int(1, Timeouts::MAX as i128)),
    Rule::new("thalweg.nat44.timeouts.tcp-established", Kind::Int(1, Timeouts::MAX as i128)),
    Rule::new("thalweg.nat44.timeouts.tcp-transitory", Kind::Int(1, Timeouts::MAX as i128)),
    Rule::new("thalweg.nat44.timeouts.icmp", Kind::Int(1, Timeouts::MAX as i128)),
    Rule::new("thalweg.nat44.addresses", Kind::List(0, MAX_ADDRESSES)),
    Rule::new("thalweg.nat44.addresses.[]", Kind::Other(pool)),
    Rule::new("thalweg.nat44.static-mappings", Kind::List(0, crate::state::MAX_MAPPINGS)),
    Rule::new("thalweg.nat44.static-mappings.[]", Kind::Other(is_static)),
    Rule::new("thalweg.nat44.identity-mappings", Kind::List(0, crate::state::MAX_MAPPINGS)),
    Rule::new("thalweg.nat44.identity-mappings.[]", Kind::Other(is_identity)),
    Rule::new("thalweg.nat44.load-balancing", Kind::List(0, crate::state::MAX_MAPPINGS)),
    Rule::new("thalweg.nat44.load-balancing.[]", Kind::Other(is_balanced)),
    Rule::new("thalweg.interfaces.*.nat44", Kind::Word(&SIDES)),
    Rule::new(
        "thalweg.interfaces.*.nat44-address",
        Kind::Word(&["pool", "twice-nat", "pool twice-nat"]),
    ),
];

fn pool(value: &Value) -> Result<(), String> {
    let PoolWords { first, last, .. } = read_words(value, |args| added(PoolWords::take(args)?))?;
    match last.to_bits().checked_sub(first.to_bits()) {
        Some(more) if (more as usize) < MAX_ADDRESSES => Ok(()),
        _ => Err(format!("`<first> - <last>' of up to {MAX_ADDRESSES} addresses")),
    }
}

/// The entry that words add: a document takes nothing away.
fn added<T>((words, add): (T, bool)) -> Result<T, CliError> {
    if add { Ok(words) } else { Err(CliError::failed("an entry without `del'")) }
}

/// A limit of sessions, and the routing table that it is for.
fn limit(value: &Value) -> Result<(u32, TableId), String> {
    read_words(value, |args| {
        let most = args.u32("sessions")?;
        let of = if args.keyword("vrf") { table(args)? } else { TableId(0) };
        Ok((most, of))
    })
}

fn is_static(value: &Value) -> Result<(), String> {
    is_mapping(Family::Static, value)
}

fn is_identity(value: &Value) -> Result<(), String> {
    is_mapping(Family::Identity, value)
}

fn is_balanced(value: &Value) -> Result<(), String> {
    is_mapping(Family::Balanced, value)
}

fn is_mapping(family: Family, value: &Value) -> Result<(), String> {
    let right = format!("the arguments of `{}'", family.command());
    match value {
        Value::Text(text) if text.len() < 16_384 && !text.contains('\n') => {
            let wrong = |e: CliError| format!("{right} ({})", e.to_string().replace('\n', " "));
            MappingWords::read(family, text, TableId(0)).map(drop).map_err(wrong)
        }
        _ => Err(right),
    }
}

fn file(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) => file_path(text),
        _ => Err("the absolute path of a file".into()),
    }
}

fn vrf_line(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) if cli_args::vrf(text).is_some() => Ok(()),
        _ => Err("a table and the tables that it reaches, such as \"7 reaches 0 8\"".into()),
    }
}

impl Section<Control> for Translation {
    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let nat = c.state::<Nat44>();
        let nat = nat.borrow();
        let Some(sessions) = nat.sessions() else { return };
        let [a, b] = ROOT;
        out.put(&[a, b, "sessions"], u64::from(sessions));
        let vrfs = nat.default_vrfs();
        for (key, table) in [("inside-vrf", vrfs.inside), ("outside-vrf", vrfs.outside)] {
            if table != TableId(0) {
                out.put(&[a, b, key], u64::from(table.0));
            }
        }
        if nat.per_host() > 0 {
            out.put(&[a, b, "sessions-per-host"], u64::from(nat.per_host()));
        }
        for (table, most) in nat.limits() {
            out.push(&[a, b, "session-limits"], format!("{most} vrf {table}"));
        }
        for vrf in nat.vrfs() {
            out.push(&[a, b, "vrf-tables"], cli_args::vrf_text(vrf));
        }
        if let Some((file, seconds)) = nat.saving() {
            out.put(&[a, b, "save", "file"], file.display().to_string());
            out.put(&[a, b, "save", "every"], u64::from(*seconds));
        }
        let (now, default) = (nat.timeouts(), Timeouts::default());
        for (key, of) in TIMEOUTS {
            if of(&now) != of(&default) {
                out.put(&[a, b, "timeouts", key], u64::from(of(&now)));
            }
        }
        for range in cli_args::ranges(nat.addresses().iter()) {
            out.push(&[a, b, "addresses"], cli_args::range_text(&range));
        }
        // Each list as it was made, but the lists in one order.
        let all: Vec<MappingWords> =
            nat.mappings().map(|m| MappingWords::of(c, m, vrfs.inside)).collect();
        for list in [Family::Static, Family::Balanced, Family::Identity] {
            for words in all.iter().filter(|words| words.family == list) {
                out.push(&[a, b, list.key()], words.to_string());
            }
        }
        for (sw_if, role) in nat.roles() {
            let sides = match (role.inside, role.outside) {
                (true, true) => 2,
                (inside, _) => usize::from(!inside),
            };
            let sides = SIDES[sides + 3 * usize::from(role.output)];
            let name = c.interface_name(*sw_if);
            out.put(&["thalweg", "interfaces", &name, "nat44"], sides);
        }
        for (sw_if, twice) in nat.address_interfaces() {
            let name = c.interface_name(*sw_if);
            let word = match (twice, nat.address_interfaces().contains(&(*sw_if, !twice))) {
                (_, true) => "pool twice-nat",
                (true, false) => "twice-nat",
                (false, false) => "pool",
            };
            out.put(&["thalweg", "interfaces", &name, "nat44-address"], word);
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        let [a, b] = ROOT;
        let used = doc.at(&ROOT).is_some()
            || doc.interfaces().iter().any(|i| {
                ["nat44", "nat44-address"]
                    .iter()
                    .any(|key| doc.at(&["thalweg", "interfaces", &i.name, key]).is_some())
            });
        if !used {
            return;
        }
        let sessions = doc.at(&[a, b, "sessions"]);
        let n = sessions.as_ref().map_or(SESSIONS.to_string(), |f| f.node.value.to_string());
        let mut enable = format!("nat44 plugin enable sessions {n}");
        for key in ["inside-vrf", "outside-vrf"] {
            if let Some(f) = doc.at(&[a, b, key]) {
                enable += &format!(" {key} {}", f.node.value);
            }
        }
        let item = Item::new(rank::SERVICE, ENABLED, "thalweg.nat44", enable);
        out.add(item.unset("nat44 plugin disable").recreate());
        let mut add = |order: u32, key: String, path: &str, set: String, unset: String| {
            let item = Item::new(rank::SERVICE, key, path, set).unset(unset).needs(ENABLED);
            out.add(item.order(order));
        };
        if let Some(f) = doc.at(&[a, b, "sessions-per-host"]) {
            let set = format!("set nat44 session limit {} per-host", f.node.value);
            let back = "set nat44 session limit 0 per-host".into();
            add(1, "nat44 sessions-per-host".into(), &f.path, set, back);
        }
        for f in doc.at(&[a, b, "session-limits"]).into_iter() {
            for (i, node) in f.node.list().iter().enumerate() {
                let Ok((most, table)) = limit(&node.value) else { continue };
                let line = |most: u32| format!("set nat44 session limit {most} vrf {table}");
                let path = format!("{}[{i}]", f.path);
                add(1, format!("nat44 session limit {table}"), &path, line(most), line(0));
            }
        }
        for (key, of) in TIMEOUTS {
            if let Some(f) = doc.at(&[a, b, "timeouts", key]) {
                let back = format!("set nat timeout {key} {}", of(&Timeouts::default()));
                let set = format!("set nat timeout {key} {}", f.node.value);
                add(1, format!("nat44 timeout {key}"), &f.path, set, back);
            }
        }
        for f in doc.at(&[a, b, "addresses"]).into_iter() {
            for (address, path) in addresses(&f) {
                let set = format!(
                    "nat44 add address {}",
                    cli_args::range_text(&(address, address.address))
                );
                add(2, set.clone(), &path, set.clone(), set + " del");
            }
        }
        vrfs(doc, out);
        interfaces(doc, out);
        mappings(doc, out);
        saving(doc, out);
    }
}

/// The addresses of pools, each with the path of its range: a range that grows keeps its others.
fn addresses(list: &Found<'_>) -> Vec<(Address, String)> {
    let mut all = Vec::new();
    for (i, node) in list.node.list().iter().enumerate() {
        let words = read_words(&node.value, |args| added(PoolWords::take(args)?));
        let Ok(PoolWords { first, last, table, twice }) = words else { continue };
        let path = format!("{}[{i}]", list.path);
        let each = (first.to_bits()..=last.to_bits()).take(MAX_ADDRESSES);
        all.extend(each.map(|bits| (Address { twice, address: bits.into(), table }, path.clone())));
    }
    all
}

/// Texts of a list, each with its path.
fn texts<'a>(list: &Found<'a>) -> impl Iterator<Item = (&'a str, String)> {
    let path = list.path.clone();
    let each = list.node.list().iter().enumerate();
    each.filter_map(move |(i, node)| Some((node.text()?, format!("{path}[{i}]"))))
}

fn vrfs(doc: &Doc<'_>, out: &mut Draft) {
    let Some(f) = doc.at(&[ROOT[0], ROOT[1], "vrf-tables"]) else { return };
    let each = texts(&f).filter_map(|(text, path)| Some((cli_args::vrf(text)?, path)));
    for ((table, routes), path) in each {
        let key = format!("nat44 vrf table {table}");
        let [set, back] = ["add", "del"].map(|w| format!("nat44 vrf table {w} {table}"));
        let item = Item::new(rank::SERVICE, key.clone(), &path, set).unset(back).needs(ENABLED);
        out.add(item.order(1));
        // The order counts: a route that moves is deleted and added.
        for (i, to) in routes.iter().enumerate() {
            let [set, back] =
                ["add", "del"].map(|w| format!("nat44 vrf route {w} table {table} {to}"));
            let name = format!("nat44 vrf route {table} {i} {to}");
            let item = Item::new(rank::SERVICE, name, &path, set).unset(back);
            out.add(item.needs(key.clone()).order(2 + i as u32));
        }
    }
}

type Timeout = (&'static str, fn(&Timeouts) -> u32);

const TIMEOUTS: [Timeout; 4] = [
    ("udp", |t| t.udp),
    ("tcp-established", |t| t.tcp_established),
    ("tcp-transitory", |t| t.tcp_transitory),
    ("icmp", |t| t.icmp),
];

fn interfaces(doc: &Doc<'_>, out: &mut Draft) {
    for i in doc.interfaces() {
        if let Some(f) = doc.at(&["thalweg", "interfaces", &i.name, "nat44"])
            && let Some(sides) = f.node.text()
        {
            let feature = if sides.contains("output-feature") { " output-feature" } else { "" };
            for side in sides.split(' ').filter(|s| *s != "output-feature") {
                let set = format!("set interface nat44 {side} {}{feature}", i.name);
                let key = format!("nat44 {side} {}", i.name);
                let item = Item::new(rank::SERVICE_PORT, key, &f.path, set.clone());
                let item = item.unset(set + " del").needs(ENABLED).needs(interface_key(&i.name));
                out.add(item.recreate());
            }
        }
        if let Some(f) = doc.at(&["thalweg", "interfaces", &i.name, "nat44-address"]) {
            for word in f.node.text().unwrap_or_default().split(' ') {
                let twice = if word == "twice-nat" { " twice-nat" } else { "" };
                let set = format!("nat44 add interface address {}{twice}", i.name);
                let key = format!("nat44 interface address {}{twice}", i.name);
                let item = Item::new(rank::SERVICE, key, &f.path, set.clone());
                let item = item.unset(set + " del").needs(ENABLED).needs(interface_key(&i.name));
                out.add(item.recreate());
            }
        }
    }
}

fn saving(doc: &Doc<'_>, out: &mut Draft) {
    let at = |key| doc.at(&[ROOT[0], ROOT[1], "save", key]);
    let (Some(file), Some(every)) = (at("file"), at("every")) else { return };
    let Some(name) = file.node.text() else { return };
    let set = format!("nat44 save {name} every {} restore", every.node.value);
    // Restoring needs addresses, mappings and roles, which come before it, and no packets yet:
    // interfaces are set up after it.
    let item = Item::new(rank::SERVICE_PORT, "nat44 save", &file.path, set);
    let item = item.claims(file_claim(Path::new(name)));
    out.add(item.unset("nat44 save never").needs(ENABLED).order(1));
}

fn mappings(doc: &Doc<'_>, out: &mut Draft) {
    let inside = doc.at(&[ROOT[0], ROOT[1], "inside-vrf"]).and_then(|f| f.node.u32());
    for family in Family::ALL {
        let Some(f) = doc.at(&[ROOT[0], ROOT[1], family.key()]) else { continue };
        for (text, path) in texts(&f) {
            let inside = TableId(inside.unwrap_or_default());
            let Ok(words) = MappingWords::read(family, text, inside) else { continue };
            let set = format!("{} {words}", family.command());
            let item = Item::new(rank::SERVICE, set.clone(), path, set.clone());
            let mut item = item.unset(format!("{set} del")).needs(ENABLED).order(3);
            if let Outside::Interface(name) = &words.outside {
                item = item.needs(interface_key(name));
            }
            out.add(item);
        }
    }
}
