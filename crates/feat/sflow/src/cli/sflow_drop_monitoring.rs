//! `sflow drop-monitoring`.

use crate::cli_support::{refused, required};
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
        "Send dropped packets and why they were dropped\n\
         Of interfaces with sFlow, and no more than so many a second, 100 unless said otherwise; how \
         many were suppressed is told."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        required(args, "enable or disable")?;
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
