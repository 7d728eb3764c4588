//! `sflow sub-interfaces`.

use crate::cli_support::refused;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SFlowSubInterfaces = SFlowSubInterfaces;

/// The command's type.
pub struct SFlowSubInterfaces;

impl Command<Control> for SFlowSubInterfaces {
    fn path(&self) -> &'static str {
        "sflow sub-interfaces"
    }
    fn usage(&self) -> &'static str {
        "enable|disable"
    }
    fn help(&self) -> &'static str {
        "Name sub-interfaces in samples, in place of their ports\n\
         Ports are sampled in any case: this is about where a sampled packet came in and went out."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let on = args.enable_disable("sub-interfaces in samples")?;
        args.end()?;
        crate::state::set_sub_interfaces(cx, on).map_err(refused)?;
        Ok(Outcome::Done)
    }
    fn complete(&self, _cx: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => ["enable", "disable"].map(String::from).into(),
            _ => Vec::new(),
        }
    }
}
