//! What several show commands print alike.

use crate::interface::{self, InterfaceView, Mac, SwIfIndex};
use serde_json::{Map, Value, json};
use thalweg_cli::Output;
use thalweg_graph::Control;

/// Centres `text` in `width` columns, an odd blank to the left, as VPP does.
pub(crate) fn centre(text: &str, width: usize) -> String {
    let spare = width.saturating_sub(text.chars().count());
    let left = spare.div_ceil(2);
    format!("{:left$}{text}{:2$}", "", "", spare - left)
}

/// The word for a state.
pub(crate) fn up_down(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

/// `02:fe:00:00:00:01`
pub(crate) fn mac(mac: Mac) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}

fn views(c: &Control, chosen: &[SwIfIndex]) -> Vec<InterfaceView> {
    chosen.iter().filter_map(|i| interface::view(c, *i).ok()).collect()
}

/// `show interface address`
pub(crate) fn addresses(c: &Control, chosen: &[SwIfIndex], out: &mut Output) {
    let mut rows = Vec::new();
    for v in views(c, chosen) {
        let lines = interface::addresses(c, v.sw_if);
        out.line(format_args!("{} ({}):", v.name, if v.admin_up { "up" } else { "dn" }));
        if let Some(l2) = &v.l2 {
            out.line(format_args!("  L2 {l2}"));
        }
        lines.iter().for_each(|l| out.line(format_args!("  {l}")));
        rows.push(json!({
            "name": v.name,
            "index": v.sw_if,
            "admin_up": v.admin_up,
            "l2": v.l2,
            "addresses": lines,
        }));
    }
    out.json(rows.into());
}

/// `show interface features`
pub(crate) fn features(c: &Control, chosen: &[SwIfIndex], out: &mut Output) {
    let mut rows = Map::new();
    for v in views(c, chosen) {
        out.line(format_args!("Feature paths configured on {}...", v.name));
        let mut arcs = Map::new();
        for (arc, names) in c.enabled_features(v.sw_if) {
            out.line(format_args!("\n{arc}:"));
            match names.is_empty() {
                true => out.line("  none configured"),
                false => names.iter().for_each(|n| out.line(format_args!("  {n}"))),
            }
            arcs.insert(arc.into(), json!(names));
        }
        rows.insert(v.name, Value::Object(arcs));
    }
    out.json(Value::Object(rows));
}
