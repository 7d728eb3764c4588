//! `trace add`: starts tracing packets.

use crate::ask_workers;
use crate::classify::{self, User};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::control::NodeEntry;
use thalweg_graph::decl::{Kind, NodeId};
use thalweg_graph::trace::MAX_TRACES;
use thalweg_graph::worker::Core;

/// `trace add <node> <count> [verbose] [filter]`
pub struct TraceAdd;

/// The command.
pub static COMMAND: TraceAdd = TraceAdd;

impl Command<Control> for TraceAdd {
    fn path(&self) -> &'static str {
        "trace add"
    }

    fn usage(&self) -> &'static str {
        "<node> <count> [verbose] [filter]"
    }

    fn help(&self) -> &'static str {
        "Trace the next packets of a node\n\
         Of an input node those that it receives; of another those that the router itself makes\n\
         there: `ip4-lookup' (echo requests of `ping'), `ip4-icmp-error', `ip4-glean' and\n\
         `<interface>-output' (ARP requests). Each worker traces this number; `filter' takes only\n\
         received packets that match `classify filter trace'. Traces are always verbose.\n\
         `show trace' prints the traces, `clear trace' stops tracing."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let node = node_arg(c, args)?;
        let name = c.nodes()[node.0 as usize].name.to_string();
        let count = args.number("count", 1, MAX_TRACES as u64)? as u32;
        let mut filter = false;
        while !args.is_empty() {
            filter |= args.choice("option", &["verbose", "filter"])? == "filter";
        }
        args.end()?;
        let filter = match filter {
            true => Some(classify::filter(c, User::Trace)?),
            false => None,
        };
        out.json(serde_json::json!({ "node": name, "count": count }));
        let add = move |core: &mut Core| core.trace_add(node, count, filter.clone());
        ask_workers(c, out, add, |_, _, _| Ok(()))
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        if before.is_empty() { input_nodes(c) } else { Vec::new() }
    }
}

/// Takes the name of a node where traces may begin.
///
/// # Errors
/// If no node has the name, or none can begin there.
pub fn node_arg(c: &Control, args: &mut Args<'_>) -> Result<NodeId, CliError> {
    let expected = format!(
        "an input node ({}), or one where the router makes packets, such as ip4-lookup",
        join(&input_nodes(c))
    );
    let starts = |w: &str| c.node(w).filter(|id| can_start(&c.nodes()[id.0 as usize]));
    args.with("node", &expected, starts)
}

fn join(names: &[String]) -> String {
    if names.is_empty() { "there is none".into() } else { names.join(", ") }
}

/// Packets of these may begin a trace: those that it receives, or that the router makes there.
pub(crate) fn can_start(node: &NodeEntry) -> bool {
    node.live && !matches!(node.kind, Kind::Drop | Kind::Tap | Kind::Timer)
}

/// Returns the names of input nodes.
pub fn input_nodes(c: &Control) -> Vec<String> {
    let inputs = c.nodes().iter().filter(|n| n.kind == Kind::Input && n.live);
    let mut names: Vec<String> = inputs.map(|n| n.name.to_string()).collect();
    names.sort();
    names
}
