//! `show clock`: uptime and wall-clock time.

use std::time::SystemTime;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::clock;
use thalweg_graph::control::Control;

/// `show clock [verbose]`
pub struct ShowClock;

/// The command.
pub static COMMAND: ShowClock = ShowClock;

impl Command<Control> for ShowClock {
    fn path(&self) -> &'static str {
        "show clock"
    }

    fn usage(&self) -> &'static str {
        "[verbose]"
    }

    fn help(&self) -> &'static str {
        "Show the uptime, as traces print it, and the wall-clock time"
    }

    fn run(
        &self,
        _: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let verbose = args.keyword("verbose");
        args.end()?;
        let (now, wall) = (clock::now_seconds(), thalweg_cli::utc(SystemTime::now()));
        out.json(serde_json::json!({
            "seconds": now, "wall_clock": wall, "clock_hz": clock::hz(),
        }));
        let rate = if verbose { format!(", {:.0} ticks/sec", clock::hz()) } else { String::new() };
        out.line(format_args!("Time now {now:.6}, {wall} UTC{rate}"));
        Ok(Outcome::Done)
    }
}
