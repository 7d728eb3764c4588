//! Configuration of pairs: vppcfg's key `lcp` of interfaces, and Thalweg's own below `thalweg.lcp`.

use crate::class::Class;
use crate::options::OWN_NAMESPACE;
use crate::pairs::{self, Made, PairView};
use crate::{gate, options, startup};
use thalweg_config::declare::{
    Doc, Draft, Dump, Interface, Item, Kind, Name, Part, Problem, Rule, Section, Value,
    interface_key, is_loopback, rank,
};
use thalweg_graph::Control;

/// Section of pairs.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const WORD: Kind = Kind::Name(Name::Any);

const RULES: &[Rule] = &[
    Rule::new("thalweg.lcp", Kind::Keys),
    Rule::new("thalweg.lcp.netns", WORD),
    Rule::new("thalweg.lcp.ethertypes", Kind::List(0, 256)),
    Rule::new("thalweg.lcp.ethertypes.[]", Kind::Int(0x600, 0xffff)),
    Rule::new("thalweg.lcp.osi-protocols", Kind::List(0, 256)),
    Rule::new("thalweg.lcp.osi-protocols.[]", Kind::Int(0, 255)),
    Rule::new("thalweg.lcp.punt-limits", Kind::Named(Name::Any)),
    Rule::new("thalweg.lcp.punt-limits.*", Kind::Int(0, u32::MAX as i128)),
    Rule::new("thalweg.interfaces.*.lcp", WORD),
    Rule::new("thalweg.interfaces.*.lcp-netns", WORD),
    Rule::new("thalweg.interfaces.*.lcp-tun", Kind::Bool),
];

const LCP: [&str; 2] = ["thalweg", "lcp"];

fn key(name: &str) -> String {
    format!("lcp {name}")
}

fn dump(pair: &PairView, usual: Option<&str>, out: &mut Dump<'_>) {
    let name = pair.phy.as_str();
    out.set(name, "lcp", pair.pair.name.as_str());
    let own = &["thalweg", "interfaces", name];
    let is_sub = matches!(pair.pair.made, Made::Vlan { .. });
    let namespace = pair.pair.namespace.as_deref();
    if !is_sub && namespace != usual {
        out.put(&[own[0], own[1], own[2], "lcp-netns"], namespace.unwrap_or(OWN_NAMESPACE));
    }
    if pair.pair.made == Made::Tun {
        out.put(&[own[0], own[1], own[2], "lcp-tun"], true);
    }
}

impl Section<Control> for Settings {
    fn supports(&self) -> Vec<&'static str> {
        vec!["interfaces.*.lcp", "interfaces.*.sub-interfaces.*.lcp", "loopbacks.*.lcp"]
    }

    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let options = options::get(c);
        let usual = startup::defaults().namespace;
        if let Some(namespace) = options.namespace.as_ref().filter(|n| usual.as_ref() != Some(n)) {
            out.put(&[LCP[0], LCP[1], "netns"], namespace.as_str());
        }
        for pair in pairs::all(c) {
            dump(&pair, options.namespace.as_deref(), out);
        }
        for kind in options.ethertypes {
            out.push(&[LCP[0], LCP[1], "ethertypes"], u32::from(kind));
        }
        for protocol in options.osi {
            out.push(&[LCP[0], LCP[1], "osi-protocols"], u32::from(protocol));
        }
        for class in Class::ALL {
            let rate = gate::rate(c, class);
            if rate != class.usual_rate() {
                out.put(&[LCP[0], LCP[1], "punt-limits", class.name()], rate);
            }
        }
    }

    fn missing(&self, c: &Control) -> Vec<Part> {
        // The twins of sub-interfaces go with that of their parent.
        let own = |pair: &PairView| !matches!(pair.pair.made, Made::Vlan { .. }) && pair.is_away;
        let part = |pair: PairView| {
            let table = if is_loopback(&pair.phy) { "loopbacks" } else { "interfaces" };
            let why = format!(
                "device {} went away; it is made again when that is possible",
                pair.pair.name
            );
            Part::missing(format!("{table}.{}.lcp", pair.phy), why)
        };
        pairs::all(c).into_iter().filter(own).map(part).collect()
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        let usual = doc.at(&[LCP[0], LCP[1], "netns"]);
        if let Some(found) = &usual
            && let Some(name) = found.node.text()
        {
            let set = format!("lcp default netns {name}");
            let item = Item::new(rank::BEFORE_CREATE, "lcp default netns", &found.path, set);
            out.add(item.unset("lcp default clear netns"));
        }
        let by_stanza = startup::defaults().namespace;
        let usual = usual.and_then(|found| found.node.text()).or(by_stanza.as_deref());
        for i in doc.interfaces() {
            pair(i, usual, out);
        }
        list(doc, "ethertypes", "lcp ethertype", |n| format!("{n:#06x}"), out);
        list(doc, "osi-protocols", "lcp osi-proto", |n| format!("{n:#04x}"), out);
        for (name, found) in doc.entries(&[LCP[0], LCP[1], "punt-limits"]) {
            let Some(rate) = found.node.u32() else { continue };
            if Class::named(name).is_none() {
                let all = Class::ALL.map(Class::name).join(", ");
                let text = format!("there is no class `{name}' of punted packets, but {all}");
                out.problem(Problem::at(found.node, found.path, text));
                continue;
            }
            let key = format!("set punt class {name}");
            let set = format!("{key} {rate}");
            let unset = format!("{key} default");
            out.add(Item::new(rank::SERVICE, key, &found.path, set).unset(unset));
        }
    }
}

/// Adds the items of a list of numbers.
fn list(doc: &Doc<'_>, name: &str, command: &str, words: impl Fn(u32) -> String, out: &mut Draft) {
    let found = doc.at(&[LCP[0], LCP[1], name]);
    for (node, path) in found.iter().flat_map(|f| f.node.list().iter().map(|n| (n, &f.path))) {
        let Value::Int(number) = &node.value else { continue };
        let Ok(number) = u32::try_from(*number) else { continue };
        let set = format!("{command} enable {}", words(number));
        let unset = format!("{command} disable {}", words(number));
        out.add(Item::new(rank::SERVICE, set.clone(), path, set).unset(unset));
    }
}

/// Adds the item of a pair.
fn pair(i: &Interface<'_>, usual: Option<&str>, out: &mut Draft) {
    let Some(found) = i.get("lcp") else { return };
    let Some(twin) = found.node.text() else { return };
    let namespace = i.get("lcp-netns");
    let namespace = namespace.as_ref().and_then(|f| f.node.text()).or(usual);
    let is_tun = i.get("lcp-tun").is_some_and(|f| f.node.bool() == Some(true));
    let mut set = format!("lcp create {} host-if {twin}", i.name);
    if let Some(namespace) = namespace.filter(|_| i.sub().is_none()) {
        set += &format!(" netns {namespace}");
    }
    if is_tun {
        set += " tun";
    }
    // A twin is made with the state of its interface, which is set before.
    let item = Item::new(rank::PAIR, key(&i.name), found.path, set)
        .unset(format!("lcp delete {}", i.name))
        .needs(interface_key(&i.name))
        .order(i.number)
        .recreate();
    out.add(match i.sub() {
        Some((parent, _)) => item.needs(key(parent)),
        None => item,
    });
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
    fn lists_and_limits_become_commands() {
        assert_eq!(
            commands(
                "thalweg:\n  lcp:\n    netns: dataplane\n    ethertypes: [35020]\n    \
                 osi-protocols: [131]\n    punt-limits: {bgp: 7}\n"
            ),
            "lcp default netns dataplane\nlcp ethertype enable 0x88cc\nlcp osi-proto enable 0x83\n\
             set punt class bgp 7"
        );
        let said = commands("thalweg:\n  lcp:\n    punt-limits: {egp: 7}\n");
        assert!(said.contains("there is no class `egp'"), "{said}");
    }
}
