//! Configuration of counters.

use crate::Forwarding;
use thalweg_config::declare::{Doc, Draft, Dump, Item, Kind, Rule, Section, rank};
use thalweg_graph::Control;

/// Section of forwarding objects.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const KEY: [&str; 2] = ["thalweg", "route-counters"];

const RULES: &[Rule] = &[Rule::new("thalweg.route-counters", Kind::Bool)];

impl Section<Control> for Settings {
    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        if c.state::<Forwarding>().borrow().counting() {
            out.put(&KEY, true);
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        let Some(found) = doc.at(&KEY).filter(|f| f.node.bool() == Some(true)) else { return };
        let item =
            Item::new(rank::SERVICE, "route-counters", found.path, "adjacency counters enable");
        out.add(item.unset("adjacency counters disable"));
    }
}
