//! `set interface l2 xconnect`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface_arg;
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SetInterfaceL2Xconnect = SetInterfaceL2Xconnect;

/// The command's type.
pub struct SetInterfaceL2Xconnect;

impl Command<Control> for SetInterfaceL2Xconnect {
    fn path(&self) -> &'static str {
        "set interface l2 xconnect"
    }
    fn usage(&self) -> &'static str {
        "<interface> <interface>"
    }
    fn help(&self) -> &'static str {
        "Cross connect the first interface to the second.\n\
         Run the command twice for both directions. `set interface l3 <interface>` ends it."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let rx = interface_arg(cx, args)?;
        let tx = interface_arg(cx, args)?;
        args.end()?;
        crate::set_xconnect(cx, rx, tx).map_err(CliError::failed)?;
        Ok(Outcome::Done)
    }
    fn complete(&self, cx: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        thalweg_device::interface_names(cx)
    }
}
