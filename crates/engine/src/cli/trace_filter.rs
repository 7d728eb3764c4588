//! `trace filter`: shows the traces of packets that meet a node, or that do not.

use crate::traces::{NodeFilter, Tracing};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::trace::MAX_TRACES;

/// `trace filter include|exclude <node> <count> | none`
pub struct TraceFilter;

/// The command.
pub static COMMAND: TraceFilter = TraceFilter;

impl Command<Control> for TraceFilter {
    fn path(&self) -> &'static str {
        "trace filter"
    }

    fn usage(&self) -> &'static str {
        "include <node> <count> | exclude <node> <count> | none"
    }

    fn help(&self) -> &'static str {
        "Show only traces that meet a node, or that do not\n\
         Of each thread, up to this number. It concerns `show trace', `show trace paths' and the\n\
         binary API; all traces are kept, and `trace filter none' shows them again."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let filter = match args.choice("filter", &["include", "exclude", "none"])? {
            "none" => None,
            word => {
                let node = args.with("node", "a node of the graph", |w| c.node(w))?;
                let count = args.number("count", 1, MAX_TRACES as u64)? as usize;
                Some(NodeFilter { node, include: word == "include", count })
            }
        };
        args.end()?;
        out.json(serde_json::json!({
            "node": filter.map(|f| c.nodes()[f.node.0 as usize].name.to_string()),
            "include": filter.map(|f| f.include), "count": filter.map(|f| f.count),
        }));
        c.state::<Tracing>().borrow_mut().filter = filter;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => ["include", "exclude", "none"].map(String::from).into(),
            [_] => c.nodes().iter().map(|n| n.name.to_string()).collect(),
            _ => Vec::new(),
        }
    }
}
