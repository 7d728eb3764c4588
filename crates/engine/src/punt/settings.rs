//! Configuration of punt limits.

use thalweg_config::declare::{Doc, Draft, Dump, Item, Kind, Name, Rule, Section, rank};
use thalweg_graph::Control;

/// Section of punt limits.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const KEY: [&str; 2] = ["thalweg", "punt-limits"];

const RULES: &[Rule] = &[
    Rule::new("thalweg.punt-limits", Kind::Named(Name::Any)),
    Rule::new("thalweg.punt-limits.*", Kind::Int(0, u32::MAX as i128)),
];

impl Section<Control> for Settings {
    fn rules(&self) -> &'static [Rule] {
        RULES
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        for reason in super::reasons(c) {
            if reason.rate != reason.decl.rate {
                out.put(&[KEY[0], KEY[1], reason.decl.name], reason.rate);
            }
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        for (name, found) in doc.entries(&KEY) {
            let Some(limit) = found.node.u32() else { continue };
            let key = format!("set punt limit {name}");
            let set = format!("{key} {limit}");
            let unset = format!("{key} default");
            out.add(Item::new(rank::SERVICE, key, &found.path, set).unset(unset));
        }
    }
}
