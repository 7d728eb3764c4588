//! `set interface state`: brings an interface up or down.

use crate::command_line::{interface_arg, interface_names, refused};
use crate::interface;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set interface state`
pub struct SetInterfaceState;

/// The command.
pub static COMMAND: SetInterfaceState = SetInterfaceState;

impl Command<Control> for SetInterfaceState {
    fn path(&self) -> &'static str {
        "set interface state"
    }

    fn usage(&self) -> &'static str {
        "<interface> up|down"
    }

    fn help(&self) -> &'static str {
        "Bring an interface up or down"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let up = args.choice("state", &["up", "down"])? == "up";
        args.end()?;
        interface::set_admin(c, sw_if, up).map_err(refused)?;
        out.json(serde_json::json!({ "index": sw_if.get(), "admin_up": up }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { interface_names(c) } else { ["up", "down"].map(String::from).into() }
    }
}
