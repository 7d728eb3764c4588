//! `sflow sampling-rate`.

use crate::state::{DEFAULT_RATE, set_sampling_rate, set_speed_rate};
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
        "<N>|default [speed <bits per second>]"
    }
    fn help(&self) -> &'static str {
        "Sample one packet in N\n\
         Applies to interfaces without their own rate. 0 samples none; the default is 10000.\n\
         With a speed such as 10G, applies only to those with that link speed; `default' removes\n\
         the rate of a speed."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let rate = if args.exact("default") { None } else { Some(args.u32("sampling rate")?) };
        if args.keyword("speed") {
            let speed = args.with("speed", "a speed such as 10G", |w| w.parse().ok())?;
            args.end()?;
            set_speed_rate(cx, speed, rate);
            return Ok(Outcome::Done);
        }
        args.end()?;
        set_sampling_rate(cx, rate.unwrap_or(DEFAULT_RATE));
        Ok(Outcome::Done)
    }
}
