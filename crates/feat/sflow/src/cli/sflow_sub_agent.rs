//! `sflow sub-agent`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SFlowSubAgent = SFlowSubAgent;

/// The command's type.
pub struct SFlowSubAgent;

impl Command<Control> for SFlowSubAgent {
    fn path(&self) -> &'static str {
        "sflow sub-agent"
    }
    fn usage(&self) -> &'static str {
        "<number>"
    }
    fn help(&self) -> &'static str {
        "Set the sub-agent id, which distinguishes agents with the same address\n\
         The default is 100000. When it changes, sequence numbers restart."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let number = args.number("number", 0, u32::MAX.into())? as u32;
        args.end()?;
        crate::exporting::set_sub_agent(cx, number);
        Ok(Outcome::Done)
    }
}
