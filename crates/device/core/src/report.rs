//! Output shared by several show commands.

use crate::interface::{self, InterfaceView, SwIfIndex};
use serde_json::{Map, Value, json};
use thalweg_cli::{Outcome, Output, pieces};
use thalweg_graph::Control;

/// Centres `text` in `width` columns, with an odd blank on the left, as VPP does.
pub(crate) fn centre(text: &str, width: usize) -> String {
    let spare = width.saturating_sub(text.chars().count());
    let left = spare.div_ceil(2);
    format!("{:left$}{text}{:2$}", "", "", spare - left)
}

/// `up` or `down`.
pub(crate) fn up_down(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

/// Prints interfaces in batches; `end` runs after the last.
pub(crate) fn each(
    c: &mut Control,
    chosen: Vec<SwIfIndex>,
    out: &mut Output,
    mut print: impl FnMut(&Control, &InterfaceView, &mut Output) + Send + 'static,
) -> Outcome<Control> {
    let mut chosen = chosen.into_iter();
    pieces(c, out, move |c, out| {
        let Some(sw_if) = chosen.next() else {
            out.end_elements();
            return false;
        };
        // The interface may have been deleted since.
        if let Ok(view) = interface::view(c, sw_if) {
            print(c, &view, out);
        }
        true
    })
}

/// `show interface address`
pub(crate) fn addresses(
    c: &mut Control,
    chosen: Vec<SwIfIndex>,
    out: &mut Output,
) -> Outcome<Control> {
    each(c, chosen, out, |c, v, out| {
        let lines = interface::addresses(c, v.sw_if);
        out.line(format_args!("{} ({}):", v.name, if v.admin_up { "up" } else { "dn" }));
        let l2 = interface::l2_text(c, v);
        if let Some(l2) = &l2 {
            out.line(format_args!("  L2 {l2}"));
        }
        lines.iter().for_each(|l| out.line(format_args!("  {l}")));
        if out.wants_json() {
            out.element(json!({
                "name": v.name,
                "index": v.sw_if.get(),
                "admin_up": v.admin_up,
                "l2": l2,
                "addresses": lines,
            }));
        }
    })
}

/// `show interface features`
pub(crate) fn features(
    c: &mut Control,
    chosen: Vec<SwIfIndex>,
    out: &mut Output,
) -> Outcome<Control> {
    let (mut chosen, mut rows) = (chosen.into_iter(), Map::new());
    pieces(c, out, move |c, out| {
        let Some(sw_if) = chosen.next() else {
            out.json(Value::Object(std::mem::take(&mut rows)));
            return false;
        };
        let Ok(v) = interface::view(c, sw_if) else { return true };
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
        if out.wants_json() {
            rows.insert(v.name, Value::Object(arcs));
        }
        true
    })
}
