//! `sflow polling-interval`.

use crate::cli_support::refused;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SFlowPollingInterval = SFlowPollingInterval;

/// The command's type.
pub struct SFlowPollingInterval;

impl Command<Control> for SFlowPollingInterval {
    fn path(&self) -> &'static str {
        "sflow polling-interval"
    }
    fn usage(&self) -> &'static str {
        "<S>"
    }
    fn help(&self) -> &'static str {
        "Send each interface's counters every S seconds\n\
         Interfaces are polled one after another within the interval. The default is 20."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let seconds = args.u32("polling interval")?;
        args.end()?;
        crate::state::set_polling_interval(cx, seconds).map_err(refused)?;
        Ok(Outcome::Done)
    }
}
