//! `sflow sampling-rate`.

use crate::cli_support::required;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SFlowSamplingRate = SFlowSamplingRate;

/// The command's type.
pub struct SFlowSamplingRate;

impl Command<Control> for SFlowSamplingRate {
    fn path(&self) -> &'static str {
        "sflow sampling-rate"
    }
    fn usage(&self) -> &'static str {
        "<N>"
    }
    fn help(&self) -> &'static str {
        "Sample one packet in N\n\
         On interfaces without a rate of their own. 0 takes none; the default is 10000."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        required(args, "a sampling rate")?;
        let rate = args.u32("sampling rate")?;
        args.end()?;
        crate::state::set_sampling_rate(cx, rate);
        Ok(Outcome::Done)
    }
}
