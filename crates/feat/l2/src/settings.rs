//! What is configured of layer 2.

use crate::L2;
use thalweg_config::declare::{
    Doc, Draft, Dump, Item, Kind, Name, Problem, Rule, Section, interface_key, rank,
};
use thalweg_graph::Control;

/// Cross connects.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const RULES: &[Rule] = &[Rule::new("thalweg.interfaces.*.l2xc", Kind::Name(Name::Any))];

impl Section<Control> for Settings {
    fn supports(&self) -> &'static [&'static str] {
        &["interfaces.*.l2xc"]
    }

    fn rules(&self) -> &'static [Rule] {
        RULES
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let l2 = c.state::<L2>();
        for (rx, tx) in l2.borrow().xconnects() {
            out.set(&c.interface_name(rx), "l2xc", c.interface_name(tx));
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        for i in doc.interfaces() {
            let Some(found) = i.get("l2xc") else { continue };
            let Some(to) = found.node.text() else { continue };
            let wrong = match to {
                to if to == i.name => {
                    Some("another interface expected: this is the interface itself")
                }
                to if doc.interface(to).is_none() => {
                    Some("an interface expected that the document describes")
                }
                _ => None,
            };
            if let Some(wrong) = wrong {
                out.problem(Problem::at(found.node, found.path, format!("{wrong}, not `{to}'")));
                continue;
            }
            let set = format!("set interface l2 xconnect {} {to}", i.name);
            let item = Item::new(rank::L2, format!("l2xc {}", i.name), found.path, set)
                .unset(format!("set interface l3 {}", i.name));
            out.add(item.needs(interface_key(i.name)).needs(interface_key(to)));
        }
    }
}
