//! `set interface l2 efp-filter`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{command_line::refused, interface_arg, interface_names};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SetInterfaceL2EfpFilter = SetInterfaceL2EfpFilter;

/// The command's type.
pub struct SetInterfaceL2EfpFilter;

impl Command<Control> for SetInterfaceL2EfpFilter {
    fn path(&self) -> &'static str {
        "set interface l2 efp-filter"
    }
    fn usage(&self) -> &'static str {
        "<interface> [enable|disable]"
    }
    fn help(&self) -> &'static str {
        "Have an interface in layer 2 send only frames that it would receive\n\
         Frames whose tags, as they leave, belong to another sub-interface or to none are dropped;\n\
         if it rewrites tags, those without the tags that it gives to frames, too."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let on = args.is_empty() || args.enable_disable("filter")?;
        args.end()?;
        crate::set_efp_filter(c, sw_if, on).map_err(refused)?;
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            [_] => ["enable", "disable"].map(str::to_owned).into(),
            _ => Vec::new(),
        }
    }
}
