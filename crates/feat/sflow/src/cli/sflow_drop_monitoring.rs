//! `sflow drop-monitoring`.

use crate::cli_support::refused;
use crate::state::DEFAULT_DROP_LIMIT;
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
        "enable|disable [limit <N>]"
    }
    fn help(&self) -> &'static str {
        "Report dropped packets with the reason of the drop\n\
         For interfaces with sFlow, at most N per second (default 100); suppressed reports are \
         counted."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let on = args.enable_disable("drop monitoring")?;
        let limit = match args.one_of(&["limit"])? {
            Some(_) => args.u32("packets a second")?,
            None => DEFAULT_DROP_LIMIT,
        };
        args.end()?;
        crate::state::set_drop_monitoring(cx, on, limit).map_err(refused)?;
        Ok(Outcome::Done)
    }
}
