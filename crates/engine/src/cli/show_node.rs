//! `show node`: one node of the graph.

use crate::report;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::decl::{Kind, NodeId};

/// `show node <name>|<index>`
pub struct ShowNode;

/// The command.
pub static COMMAND: ShowNode = ShowNode;

/// Takes a node's name or index.
pub(crate) fn node_arg(c: &Control, args: &mut Args<'_>) -> Result<NodeId, CliError> {
    let by_index = |word: &str| {
        let index = word.parse::<u16>().ok()?;
        (usize::from(index) < c.nodes().len()).then_some(NodeId(index))
    };
    args.with("node", "the name or index of a node: `show graph' lists them", |word| {
        c.node(word).or_else(|| by_index(word))
    })
}

impl Command<Control> for ShowNode {
    fn path(&self) -> &'static str {
        "show node"
    }

    fn usage(&self) -> &'static str {
        "<name>|<index>"
    }

    fn help(&self) -> &'static str {
        "Show one node of the graph: its kind, next nodes, counters and drop reasons\n\
         Counters are those of `show errors'."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let id = node_arg(c, args)?;
        args.end()?;
        let name = |id: NodeId| c.nodes()[id.0 as usize].name.to_string();
        let node = &c.nodes()[id.0 as usize];
        let kind = match node.kind {
            Kind::Input | Kind::Timer => "input",
            Kind::Internal => "internal",
            Kind::Tx => "output",
            Kind::Drop => "drop",
            Kind::Tap => "tap",
        };
        let state = if node.live { "active" } else { "disabled" };
        let arcs =
            node.arc.iter().map(|(arc, _)| *arc).chain(node.taps.iter().map(|(arc, _)| *arc));
        let arcs: Vec<&str> = arcs.map(|arc| c.arc_decls()[usize::from(arc.0)].name).collect();
        let counts = (0..c.workers()).map(|worker| c.node_counts(worker, id));
        let [calls, vectors, clocks, suspends] =
            counts.fold([0u64; 4], |sum, one| std::array::from_fn(|i| sum[i] + one[i]));
        let next: Vec<String> = c.node_successors(id).into_iter().map(name).collect();
        let all = (0..c.nodes().len() as u16).map(NodeId);
        let previous: Vec<String> =
            all.filter(|from| c.node_successors(*from).contains(&id)).map(name).collect();
        let errors: Vec<_> = c
            .errors()
            .iter()
            .enumerate()
            .filter(|(_, (of, _))| *of == id)
            .map(|(index, (_, decl))| (report::error_count(c, index), decl.text, decl.severity))
            .collect();
        out.json(json!({
            "name": &*node.name, "index": id.0, "kind": kind, "state": state, "arcs": arcs,
            "next": next, "previous": previous, "calls": calls, "vectors": vectors,
            "clocks": clocks, "suspends": suspends,
            "counters": errors.iter().map(|(count, reason, severity)| {
                json!({ "count": count, "reason": reason, "severity": severity.word() })
            }).collect::<Vec<_>>(),
        }));
        out.line(format_args!("node {}, type {kind}, state {state}, index {}", node.name, id.0));
        if !arcs.is_empty() {
            out.line(format_args!("  feature arcs: {}", arcs.join(", ")));
        }
        out.line(format_args!("  calls {calls}, vectors {vectors}, suspends {suspends}"));
        for (title, names) in [("next nodes", &next), ("known previous nodes", &previous)] {
            let list = if names.is_empty() { "none".into() } else { names.join(", ") };
            out.line(format_args!("  {title}: {list}"));
        }
        for (count, reason, severity) in errors {
            out.line(format_args!("  {count:>10} {reason} ({})", severity.word()));
        }
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before.is_empty() {
            true => c.nodes().iter().map(|n| n.name.to_string()).collect(),
            false => Vec::new(),
        }
    }
}
