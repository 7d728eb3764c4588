//! `set interface mpls`: whether an interface takes labelled packets.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface_arg;
use thalweg_graph::Control;

/// The command's type.
pub struct SetInterfaceMpls;

/// The command.
pub static COMMAND: SetInterfaceMpls = SetInterfaceMpls;

impl Command<Control> for SetInterfaceMpls {
    fn path(&self) -> &'static str {
        "set interface mpls"
    }
    fn usage(&self) -> &'static str {
        "<interface> enable|disable"
    }
    fn help(&self) -> &'static str {
        "Take labelled packets from an interface, or drop them\n\
         An interface that was enabled twice has to be disabled twice."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let on = args.enable_disable("switch")?;
        args.end()?;
        crate::set_enabled(c, sw_if, on)?;
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        thalweg_device::interface_names(c)
    }
}
