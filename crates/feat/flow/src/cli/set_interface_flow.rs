//! `set interface flow`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface_arg;
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SetInterfaceFlow = SetInterfaceFlow;

/// The command's type.
pub struct SetInterfaceFlow;

impl Command<Control> for SetInterfaceFlow {
    fn path(&self) -> &'static str {
        "set interface flow"
    }
    fn usage(&self) -> &'static str {
        "<interface> <set> | <interface> disable"
    }
    fn help(&self) -> &'static str {
        "Apply a set of rules (`flow add`) to packets received on an interface. A set without \
         rules drops everything."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(cx, args)?;
        let set = if args.exact("disable") { None } else { Some(args.u32("set of rules")?) };
        args.end()?;
        crate::attach(cx, sw_if, set).map_err(CliError::failed)?;
        Ok(Outcome::Done)
    }
    fn complete(&self, cx: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        thalweg_device::interface_names(cx)
    }
}
