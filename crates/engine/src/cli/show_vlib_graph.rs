//! `show vlib graph`: shows how the nodes are connected.

use crate::report::{centre, line};
use serde_json::json;
use std::fmt::Write;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::decl::{Kind, NodeId};

/// `show vlib graph [<node>|dot]`
pub struct ShowVlibGraph;

/// The command.
pub static COMMAND: ShowVlibGraph = ShowVlibGraph;

/// A node with its neighbours.
struct Row {
    name: String,
    kind: Kind,
    /// Next nodes, with their index if the node itself declares them.
    next: Vec<(String, Option<usize>)>,
    previous: Vec<String>,
}

impl Command<Control> for ShowVlibGraph {
    fn path(&self) -> &'static str {
        "show vlib graph"
    }

    fn usage(&self) -> &'static str {
        "[<node>|dot]"
    }

    fn help(&self) -> &'static str {
        "Show how the nodes of the graph are connected\n\
         Next nodes that the node itself declares have an index; the others follow on a feature arc.\n\
         `dot' prints the graph in the Graphviz language."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let dot = args.exact("dot");
        let only = match args.is_empty() || dot {
            true => None,
            false => {
                let known = |w: &str| c.node(w).map(|_| w.to_owned());
                Some(args.with("node", "a node of the graph, or `dot'", known)?)
            }
        };
        args.end()?;
        let mut rows = collect(c);
        rows.retain(|r| only.as_ref().is_none_or(|n| r.name == *n));
        print(&rows, dot, out);
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        if !before.is_empty() {
            return Vec::new();
        }
        let names = c.nodes().iter().map(|n| n.name.to_string());
        names.chain(["dot".to_owned()]).collect()
    }
}

/// Prints the graph in the Graphviz language.
pub(crate) fn print_dot(c: &Control, out: &mut Output) {
    print(&collect(c), true, out);
}

fn print(rows: &[Row], dot: bool, out: &mut Output) {
    let value = |r: &Row| {
        json!({
            "name": r.name, "kind": format!("{:?}", r.kind).to_lowercase(),
            "next": r.next.iter().map(|(n, _)| n).collect::<Vec<_>>(),
            "previous": r.previous,
        })
    };
    out.json(rows.iter().map(value).collect());
    out.text(&if dot { graphviz(rows) } else { format(rows) });
}

fn collect(c: &Control) -> Vec<Row> {
    let name = |id: &NodeId| c.nodes()[id.0 as usize].name.to_string();
    let all: Vec<Vec<NodeId>> =
        (0..c.nodes().len()).map(|i| c.node_successors(NodeId(i as u16))).collect();
    let row = |(i, entry): (usize, &thalweg_graph::control::NodeEntry)| {
        let me = NodeId(i as u16);
        let slot = |id: &NodeId| entry.nexts.iter().position(|n| n == id);
        let mut next: Vec<_> = all[i].iter().map(|id| (name(id), slot(id))).collect();
        next.sort_by_key(|(_, slot)| slot.unwrap_or(usize::MAX));
        let from = all.iter().enumerate().filter(|(_, to)| to.contains(&me));
        let mut previous: Vec<_> = from.map(|(p, _)| name(&NodeId(p as u16))).collect();
        previous.sort();
        Row { name: entry.name.to_string(), kind: entry.kind, next, previous }
    };
    let mut rows: Vec<Row> = c.nodes().iter().enumerate().map(row).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

fn format(rows: &[Row]) -> String {
    let mut text = line(["Name", "Next", "Previous"].map(|t| centre(t, 26))) + "\n";
    for r in rows {
        for i in 0..r.next.len().max(r.previous.len()).max(1) {
            let next = match r.next.get(i) {
                Some((name, Some(slot))) => format!("{name} [{slot}]"),
                Some((name, None)) => name.clone(),
                None => String::new(),
            };
            let cells = [
                format!("{:<26}", if i == 0 { &r.name } else { "" }),
                format!("{next:<26}"),
                r.previous.get(i).cloned().unwrap_or_default(),
            ];
            // A name that fills its column keeps a trailing blank.
            let apart = cells.map(|c| if c.ends_with(' ') { c } else { c + " " });
            text += &(line(apart) + "\n");
        }
    }
    text
}

fn graphviz(rows: &[Row]) -> String {
    let mut text = String::from("digraph graph_nodes {\n  rankdir=LR;\n  node [shape=box];\n");
    for r in rows {
        let look = match r.kind {
            Kind::Input | Kind::Timer => " [style=filled, fillcolor=palegreen]",
            Kind::Tx => " [style=filled, fillcolor=lightblue]",
            Kind::Drop => " [style=filled, fillcolor=mistyrose]",
            Kind::Tap => " [style=dashed]",
            Kind::Internal => "",
        };
        let _ = writeln!(text, "  {:?}{look};", r.name);
    }
    for r in rows {
        for (next, slot) in &r.next {
            let look = if slot.is_none() { " [style=dotted]" } else { "" };
            let _ = writeln!(text, "  {:?} -> {next:?}{look};", r.name);
        }
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_picture() {
        let rows = [
            Row {
                name: "ethernet-input".into(),
                kind: Kind::Internal,
                next: vec![("ip4-input".into(), Some(0)), ("error-drop".into(), None)],
                previous: vec!["host-interface-receive-node".into(), "b".into(), "c".into()],
            },
            Row { name: "pg-input".into(), kind: Kind::Input, next: vec![], previous: vec![] },
        ];
        thalweg_testkit::golden!("tests/golden/graph.txt", format(&rows));
        thalweg_testkit::golden!("tests/golden/graph.dot", graphviz(&rows));
    }
}
