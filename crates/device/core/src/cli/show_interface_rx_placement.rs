//! `show interface rx-placement`: receive queues and their workers.

use crate::command_line::sorted;
use crate::interface::{self, Interfaces, RxQueue};
use serde_json::json;
use std::collections::BTreeMap;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show interface rx-placement`
pub struct ShowInterfaceRxPlacement;

/// The command.
pub static COMMAND: ShowInterfaceRxPlacement = ShowInterfaceRxPlacement;

impl Command<Control> for ShowInterfaceRxPlacement {
    fn path(&self) -> &'static str {
        "show interface rx-placement"
    }

    fn help(&self) -> &'static str {
        "Show receive queues and their workers"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        // Queues by worker and node.
        let mut queues: BTreeMap<(usize, String), Vec<(String, RxQueue)>> = BTreeMap::new();
        for sw_if in sorted(c) {
            let device = c.state::<Interfaces>().borrow().device(sw_if);
            let (Some(device), Ok(v)) = (device, interface::view(c, sw_if)) else { continue };
            for q in device.rx_queues() {
                let row = queues.entry((q.worker, q.node.clone())).or_default();
                row.push((v.name.clone(), q));
            }
        }
        let threads = c.threads();
        let name = |w: usize| threads.get(w + 1).map_or("?", |t| t.name.as_str());
        let mut rows = Vec::new();
        let mut last = None;
        for ((worker, node), list) in &queues {
            if last != Some(worker) {
                out.line(format_args!("Thread {} ({}):", worker + 1, name(*worker)));
                last = Some(worker);
            }
            out.line(format_args!("  node {node}:"));
            for (interface, q) in list {
                out.line(format_args!("    {interface} queue {} ({})", q.queue, q.mode.name()));
                rows.push(json!({
                    "interface": interface,
                    "queue": q.queue,
                    "mode": q.mode.name(),
                    "node": node,
                    "worker": worker,
                    "thread": name(*worker),
                }));
            }
        }
        out.json(rows.into());
        Ok(Outcome::Done)
    }
}
