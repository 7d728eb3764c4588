//! `set interface l3`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface_arg;
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SetInterfaceL3 = SetInterfaceL3;

/// The command's type.
pub struct SetInterfaceL3;

impl Command<Control> for SetInterfaceL3 {
    fn path(&self) -> &'static str {
        "set interface l3"
    }
    fn usage(&self) -> &'static str {
        "<interface>"
    }
    fn help(&self) -> &'static str {
        "Return an interface to layer 3."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(cx, args)?;
        args.end()?;
        crate::set_l3(cx, sw_if).map_err(CliError::failed)?;
        Ok(Outcome::Done)
    }
    fn complete(&self, cx: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        thalweg_device::interface_names(cx)
    }
}
