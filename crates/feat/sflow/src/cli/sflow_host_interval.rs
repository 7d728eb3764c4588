//! `sflow host-interval`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SFlowHostInterval = SFlowHostInterval;

/// The command's type.
pub struct SFlowHostInterval;

impl Command<Control> for SFlowHostInterval {
    fn path(&self) -> &'static str {
        "sflow host-interval"
    }
    fn usage(&self) -> &'static str {
        "<seconds>"
    }
    fn help(&self) -> &'static str {
        "Set the polling interval of host counters in seconds\n\
         CPU, memory, disk and protocol counters (sFlow host structures). The default is 30; 0\n\
         disables them. They are sent while sFlow is enabled on an interface."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let seconds = args.number("seconds", 0, 86_400)? as u32;
        args.end()?;
        crate::exporting::set_host_interval(cx, seconds);
        Ok(Outcome::Done)
    }
}
