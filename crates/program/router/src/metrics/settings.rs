//! The metrics endpoint in configuration documents.
//!
//! The startup configuration gives the default; documents cannot remove it.

use super::Metrics;
use thalweg_config::declare::{Doc, Draft, Dump, Item, Kind, Rule, Section, Value, rank};
use thalweg_graph::Control;

/// The `thalweg.metrics` section.
pub(super) struct Settings;

pub(super) static SETTINGS: Settings = Settings;

/// Value that disables the endpoint.
const NONE: &str = "none";

const RULES: &[Rule] = &[
    Rule::new("thalweg.metrics", Kind::Keys),
    Rule::new("thalweg.metrics.listen", Kind::Other(address)),
];

fn address(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(text) if text == NONE || is_address(text) => Ok(()),
        _ => Err(format!("host:port such as 127.0.0.1:9482, or `{NONE}',")),
    }
}

/// True if a text is `host:port`. Binding it shows later whether the host exists.
pub(super) fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(char::is_whitespace) && port.parse::<u16>().is_ok()
    })
}

impl Section<Control> for Settings {
    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let state = c.state::<Metrics>();
        let state = state.borrow();
        if let Some(listen) = state.chosen() {
            out.put(&["thalweg", "metrics", "listen"], listen.unwrap_or(NONE).to_owned());
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        let Some(found) = doc.at(&["thalweg", "metrics", "listen"]) else { return };
        let Some(address) = found.node.text() else { return };
        let set = match address {
            NONE => "metrics disable".to_owned(),
            address => format!("metrics listen {address}"),
        };
        out.add(Item::new(rank::SERVICE, "metrics", found.path, set).unset("metrics default"));
    }
}
