//! `trace add`: starts tracing packets.

use crate::ask_workers;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::decl::Kind;
use thalweg_graph::trace::MAX_TRACES;

/// `trace add <input-node> <count>`
pub struct TraceAdd;

/// The command.
pub static COMMAND: TraceAdd = TraceAdd;

impl Command<Control> for TraceAdd {
    fn path(&self) -> &'static str {
        "trace add"
    }

    fn usage(&self) -> &'static str {
        "<input-node> <count>"
    }

    fn help(&self) -> &'static str {
        "Trace the next packets of an input node\n\
         Each worker traces this number. `show trace' prints the traces, `clear trace' stops tracing."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let inputs = input_nodes(c);
        let expected = format!("an input node: {}", join(&inputs));
        let name = args.with("node", &expected, |w| inputs.iter().find(|n| *n == w).cloned())?;
        let count = args.number("count", 1, MAX_TRACES as u64)? as u32;
        args.end()?;
        out.json(serde_json::json!({ "node": name, "count": count }));
        match c.node(&name) {
            Some(node) => {
                ask_workers(c, out, move |core| core.trace_add(node, count), |_, _, _| Ok(()))
            }
            None => Ok(Outcome::Done),
        }
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        if before.is_empty() { input_nodes(c) } else { Vec::new() }
    }
}

fn join(names: &[String]) -> String {
    if names.is_empty() { "there is none".into() } else { names.join(", ") }
}

fn input_nodes(c: &Control) -> Vec<String> {
    let inputs = c.nodes().iter().filter(|n| n.kind == Kind::Input && n.live);
    let mut names: Vec<String> = inputs.map(|n| n.name.to_string()).collect();
    names.sort();
    names
}
