//! `flow dump`.

use serde_json::{Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

use crate::RuleView;

/// The command.
pub static COMMAND: FlowDump = FlowDump;

/// The command's type.
pub struct FlowDump;

impl Command<Control> for FlowDump {
    fn path(&self) -> &'static str {
        "flow dump"
    }
    fn usage(&self) -> &'static str {
        "[<set>]"
    }
    fn help(&self) -> &'static str {
        "List the rules of a set, or of all sets, with the packets and bytes that they matched."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let set = if args.is_empty() { None } else { Some(args.u32("set of rules")?) };
        args.end()?;
        let all = crate::rules(cx);
        let following = crate::following(cx);
        for (number, rules) in all.iter().filter(|(n, _)| set.is_none_or(|set| set == **n)) {
            let on = following.iter().filter(|(_, s)| s == number);
            let names: Vec<String> = on.map(|(i, _)| cx.interface_name(*i)).collect();
            if out.wants_json() {
                let rules: Vec<Value> = rules.iter().map(to_json).collect();
                out.element(json!({ "set": number, "interfaces": names, "rules": rules }));
                continue;
            }
            if set.is_none() {
                let names = if names.is_empty() { "no interface".into() } else { names.join(" ") };
                out.line(format_args!("set {number} on {names}"));
            }
            for view in rules {
                let rule = &view.rule;
                out.line(format_args!(
                    " cookie={:#x}, duration={:.3}s, table={}, n_packets={}, n_bytes={}, {} actions={}",
                    rule.cookie,
                    view.age.as_secs_f64(),
                    rule.table,
                    view.packets,
                    view.bytes,
                    rule.left_text(),
                    rule.actions_text()
                ));
            }
        }
        out.end_elements();
        Ok(Outcome::Done)
    }
}

/// A rule as JSON: in parts, and as `flow add` takes it.
fn to_json(view: &RuleView) -> Value {
    let rule = &view.rule;
    json!({
        "table": rule.table,
        "priority": rule.priority,
        "cookie": rule.cookie,
        "match": rule.match_text(),
        "actions": rule.actions_text(),
        "rule": rule.to_string(),
        "packets": view.packets,
        "bytes": view.bytes,
        "age_ms": view.age.as_millis() as u64,
        "number": view.number,
    })
}
