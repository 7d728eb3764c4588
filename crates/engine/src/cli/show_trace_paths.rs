//! `show trace paths`: the ways that traced packets took through the graph.

use crate::cli::show_trace;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show trace paths [max <count>]`
pub struct ShowTracePaths;

/// The command.
pub static COMMAND: ShowTracePaths = ShowTracePaths;

/// Paths shown unless `max` is given.
const SHOWN: usize = 50;

impl Command<Control> for ShowTracePaths {
    fn path(&self) -> &'static str {
        "show trace paths"
    }

    fn usage(&self) -> &'static str {
        "[max <count>]"
    }

    fn help(&self) -> &'static str {
        "Show the ways that the traced packets took, and how many took each\n\
         The most frequent first. `show trace path <number>' shows the packets of one."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let max = match args.keyword("max") {
            true => args.number("count", 1, 1 << 20)? as usize,
            false => SHOWN,
        };
        args.end()?;
        show_trace::with_paths(c, out, move |paths, out| {
            let shown = paths.len().min(max);
            out.json(
                paths[..shown]
                    .iter()
                    .map(|p| {
                        json!({
                            "count": p.packets.len(), "id": p.id(), "nodes": p.nodes,
                            "threads": p.threads(),
                        })
                    })
                    .collect(),
            );
            if paths.is_empty() {
                out.line("No packets in trace buffer");
                return Ok(());
            }
            out.line(format_args!(
                "Found {} unique paths across all threads (showing top {shown}):",
                paths.len()
            ));
            for (i, p) in paths[..shown].iter().enumerate() {
                out.line(format_args!(
                    "\n [{i}] Count: {}  ID: {:#018x}  Length: {:2}  Threads: {:?}\n     Path: {}",
                    p.packets.len(),
                    p.id(),
                    p.nodes.len(),
                    p.threads(),
                    p.nodes.join(" -> ")
                ));
            }
            Ok(())
        })
    }
}
