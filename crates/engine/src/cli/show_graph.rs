//! `show graph`: the nodes by index, and what they can do.

use crate::cli::show_node::node_arg;
use crate::cli::trace_add::can_start;
use serde_json::json;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_graph::control::{Control, NodeEntry};
use thalweg_graph::decl::{Kind, NodeId};

/// `show graph [node <name>|<index>] [want_arcs] [<property>]`
pub struct ShowGraph;

/// The command.
pub static COMMAND: ShowGraph = ShowGraph;

const PROPERTIES: [&str; 6] = ["input", "trace_supported", "output", "drop", "tap", "handoff"];

/// Words for what a node does.
fn properties(node: &NodeEntry) -> Vec<&'static str> {
    let has = |word: &&str| match *word {
        "input" => matches!(node.kind, Kind::Input | Kind::Timer),
        "trace_supported" => can_start(node),
        "output" => node.kind == Kind::Tx && !node.name.ends_with("-handoff"),
        "drop" => node.kind == Kind::Drop,
        "tap" => node.kind == Kind::Tap,
        _ => node.name.ends_with("-handoff"),
    };
    PROPERTIES.into_iter().filter(has).collect()
}

impl Command<Control> for ShowGraph {
    fn path(&self) -> &'static str {
        "show graph"
    }

    fn usage(&self) -> &'static str {
        "[node <name>|<index>] [want_arcs] [input|trace_supported|output|drop|tap|handoff]"
    }

    fn help(&self) -> &'static str {
        "Show the nodes of the graph by index, and what they can do\n\
         A property lists the nodes that have it. `want_arcs' adds the next nodes.\n\
         `show vlib graph' shows how all nodes are connected."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut only, mut arcs, mut property) = (None, false, None);
        while !args.is_empty() {
            if args.exact("node") {
                only = Some(node_arg(c, args)?);
            } else if args.exact("want_arcs") {
                arcs = true;
            } else {
                property = Some(args.choice("property", &PROPERTIES)?);
            }
        }
        let mut table = Table::new()
            .column("Index", Align::Right, 6)
            .column("Name", Align::Left, 32)
            .column("Properties", Align::Left, 24);
        let mut values = Vec::new();
        for (index, node) in c.nodes().iter().enumerate() {
            let id = NodeId(index as u16);
            let has = properties(node);
            let other = only.is_some_and(|only| only != id)
                || property.is_some_and(|word| !has.contains(&word));
            if other {
                continue;
            }
            let next: Vec<String> = c
                .node_successors(id)
                .iter()
                .map(|next| c.nodes()[next.0 as usize].name.to_string())
                .collect();
            table.row([index.to_string(), node.name.to_string(), has.join(" ")]);
            if arcs {
                let line = |next: &String| [String::new(), format!("  -> {next}"), String::new()];
                next.iter().for_each(|next| table.row(line(next)));
            }
            values.push(json!({
                "index": index, "name": &*node.name, "live": node.live, "properties": has,
                "next": next,
            }));
        }
        out.json(values.into());
        write!(out, "{table}");
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [.., "node"] => c.nodes().iter().map(|n| n.name.to_string()).collect(),
            _ => ["node", "want_arcs"].into_iter().chain(PROPERTIES).map(String::from).collect(),
        }
    }
}
