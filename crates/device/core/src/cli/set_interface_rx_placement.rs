//! `set interface rx-placement`: assigns receive queues to workers.

use crate::command_line::{interface_arg, interface_names, refused};
use crate::interface;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set interface rx-placement`
pub struct SetInterfaceRxPlacement;

/// The command.
pub static COMMAND: SetInterfaceRxPlacement = SetInterfaceRxPlacement;

impl Command<Control> for SetInterfaceRxPlacement {
    fn path(&self) -> &'static str {
        "set interface rx-placement"
    }

    fn usage(&self) -> &'static str {
        "<interface> [queue <n>] worker <n>|auto"
    }

    fn help(&self) -> &'static str {
        "Assign a receive queue to a worker\n\
         Workers count from 0; the default queue is 0. `auto\' picks the worker with the\n\
         fewest queues, as for a new interface. Traffic is not interrupted."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let queue = if args.keyword("queue") { args.u32("queue")? } else { 0 };
        let worker = match args.choice("place", &["worker", "auto"])? {
            "auto" => None,
            _ => Some(args.u16("worker")?.into()),
        };
        args.end()?;
        interface::set_rx_placement(c, sw_if, queue, worker).map_err(refused)?;
        out.json(serde_json::json!({ "index": sw_if.get(), "queue": queue, "worker": worker }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            [_] => ["queue", "worker", "auto"].map(String::from).into(),
            [_, "queue", _] => ["worker", "auto"].map(String::from).into(),
            _ => Vec::new(),
        }
    }
}
