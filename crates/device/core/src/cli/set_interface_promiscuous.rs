//! `set interface promiscuous`: switches promiscuous mode.

use crate::command_line::{interface_arg, interface_names, refused};
use crate::interface;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set interface promiscuous`
pub struct SetInterfacePromiscuous;

/// The command.
pub static COMMAND: SetInterfacePromiscuous = SetInterfacePromiscuous;

impl Command<Control> for SetInterfacePromiscuous {
    fn path(&self) -> &'static str {
        "set interface promiscuous"
    }

    fn usage(&self) -> &'static str {
        "on|off <interface>"
    }

    fn help(&self) -> &'static str {
        "Switch promiscuous mode of an interface"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let on = args.enable_disable("mode")?;
        let sw_if = interface_arg(c, args)?;
        args.end()?;
        interface::set_promiscuous(c, sw_if, on).map_err(refused)?;
        out.json(serde_json::json!({ "index": sw_if.get(), "promiscuous": on }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { ["on", "off"].map(String::from).into() } else { interface_names(c) }
    }
}
