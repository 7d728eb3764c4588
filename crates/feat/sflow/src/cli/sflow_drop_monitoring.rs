//! `sflow drop-monitoring`.

use crate::cli_support::{refused, required};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SFlowDropMonitoring = SFlowDropMonitoring;

/// The command's type.
pub struct SFlowDropMonitoring;

impl Command<Control> for SFlowDropMonitoring {
    fn path(&self) -> &'static str {
        "sflow drop-monitoring"
    }
    fn usage(&self) -> &'static str {
        "enable|disable"
    }
    fn help(&self) -> &'static str {
        "Send dropped packets and why they were dropped\n\
         Not supported so far."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        required(args, "enable or disable")?;
        let on = args.enable_disable("drop monitoring")?;
        args.end()?;
        crate::state::set_drop_monitoring(cx, on).map_err(refused)?;
        Ok(Outcome::Done)
    }
}
