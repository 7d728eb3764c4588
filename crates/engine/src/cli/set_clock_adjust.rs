//! `set clock adjust`: moves the clock of all timers, so that a test need not wait.

use std::time::Duration;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::clock;
use thalweg_graph::control::Control;

/// `set clock adjust <seconds>`
pub struct SetClockAdjust;

/// The command.
pub static COMMAND: SetClockAdjust = SetClockAdjust;

/// Most seconds at a time: what is due is found within 12 days.
const MOST: f64 = 604_800.0;

impl Command<Control> for SetClockAdjust {
    fn path(&self) -> &'static str {
        "set clock adjust"
    }

    fn usage(&self) -> &'static str {
        "<seconds>"
    }

    fn help(&self) -> &'static str {
        "Move the clock of timers and ages ahead, for tests\n\
         What would end within these seconds (sessions, connections, neighbours, learned MAC\n\
         addresses, pending commits) ends at once. `show clock' and traces follow; the time of day,\n\
         rates and `wait' do not. Up to 604800 seconds at a time."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let expected = "seconds from 0 to 604800: the clock of timers only moves ahead";
        let range = |w: &str| w.parse().ok().filter(|s: &f64| (0.0..=MOST).contains(s));
        let seconds: f64 = args.with("seconds", expected, range)?;
        args.end()?;
        c.adjust_clock(Duration::from_secs_f64(seconds));
        let ahead = clock::ahead().as_secs_f64();
        out.json(serde_json::json!({ "seconds": seconds, "ahead": ahead }));
        out.line(format_args!("the clock of timers is {ahead:.3} seconds ahead"));
        Ok(Outcome::Done)
    }
}
