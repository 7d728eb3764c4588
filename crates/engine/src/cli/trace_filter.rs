//! `trace filter`: shows the traces of packets that meet a node or table, or that do not.

use crate::traces::{ShownFilter, Tracing, What};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::trace::MAX_TRACES;

/// `trace filter include|exclude <node>|table <n> <count> | none`
pub struct TraceFilter;

/// The command.
pub static COMMAND: TraceFilter = TraceFilter;

impl Command<Control> for TraceFilter {
    fn path(&self) -> &'static str {
        "trace filter"
    }

    fn usage(&self) -> &'static str {
        "include|exclude <node> <count> | include|exclude table <n> <count> | none"
    }

    fn help(&self) -> &'static str {
        "Show only traces that meet a node or a classifier table, or that do not\n\
         A table is met if it, or one that it leads to, hits the packet where its trace begins. Of\n\
         each thread, up to this number. The filter ends with its table, or once another node has\n\
         the number of a node that ended with its interface. It concerns `show trace',\n\
         `show trace paths' and the binary API; all traces are kept, and `trace filter none' shows\n\
         them again."
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
                let what = if args.exact("table") {
                    What::Table(args.u32("table")?)
                } else {
                    let expected = "a node of the graph, or `table' and a number";
                    What::Node(args.with("node", expected, |w| c.node(w))?)
                };
                let count = args.number("count", 1, MAX_TRACES as u64)? as usize;
                Some(ShownFilter { what, include: word == "include", count })
            }
        };
        args.end()?;
        Tracing::show(c, filter)?;
        let node = filter.and_then(|f| match f.what {
            What::Node(id) => Some(c.nodes()[id.0 as usize].name.to_string()),
            What::Table(_) => None,
        });
        let table = filter.and_then(|f| match f.what {
            What::Table(index) => Some(index),
            What::Node(_) => None,
        });
        out.json(serde_json::json!({
            "node": node, "table": table, "include": filter.map(|f| f.include), "count": filter.map(|f| f.count),
        }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => ["include", "exclude", "none"].map(String::from).into(),
            [_] => {
                let nodes = c.nodes().iter().map(|n| n.name.to_string());
                nodes.chain(["table".into()]).collect()
            }
            _ => Vec::new(),
        }
    }
}
