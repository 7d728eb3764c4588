//! `set interface rx-mode`: receive mode of queues.

use crate::command_line::{interface_arg, interface_names, refused};
use crate::interface;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::{Control, RxMode};

/// `set interface rx-mode`
pub struct SetInterfaceRxMode;

/// The command.
pub static COMMAND: SetInterfaceRxMode = SetInterfaceRxMode;

impl Command<Control> for SetInterfaceRxMode {
    fn path(&self) -> &'static str {
        "set interface rx-mode"
    }

    fn usage(&self) -> &'static str {
        "<interface> [queue <n>] polling|interrupt|adaptive"
    }

    fn help(&self) -> &'static str {
        "Set how a worker waits for packets of an interface\n\
         polling: the worker never sleeps (lowest latency, one CPU fully used);\n\
         interrupt: it sleeps as soon as queues are empty; adaptive (default): it polls\n\
         through gaps of up to 1 ms if they are common. A worker with queues of several\n\
         modes uses the one with the lowest latency."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let queue = if args.keyword("queue") { Some(args.u32("queue")?) } else { None };
        let word = args.choice("mode", &RxMode::ALL.map(RxMode::name))?;
        args.end()?;
        let mode = RxMode::ALL.into_iter().find(|m| m.name() == word).unwrap_or_default();
        interface::set_rx_mode(c, sw_if, queue, mode).map_err(refused)?;
        out.json(serde_json::json!({ "index": sw_if.get(), "queue": queue, "mode": word }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        let modes = RxMode::ALL.map(|m| m.name().to_string());
        match before {
            [] => interface_names(c),
            [_] => std::iter::once("queue".to_string()).chain(modes).collect(),
            [_, "queue", _] => modes.into(),
            _ => Vec::new(),
        }
    }
}
