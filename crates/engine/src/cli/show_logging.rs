//! `show logging`: lists the last lines of the log.

use serde_json::json;
use std::time::UNIX_EPOCH;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::log::{self, Line};

/// `show logging`
pub struct ShowLogging;

/// The command.
pub static COMMAND: ShowLogging = ShowLogging;

impl Command<Control> for ShowLogging {
    fn path(&self) -> &'static str {
        "show logging"
    }

    fn help(&self) -> &'static str {
        "Show the last lines of the log"
    }

    fn run(
        &self,
        _: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let lines = log::last();
        out.json(lines.iter().map(value).collect());
        for line in &lines {
            let (at, level) = (thalweg_cli::utc(line.at), line.level.word());
            out.line(format_args!("{at} {level:<6} {:<20} {}", line.class, line.message));
        }
        Ok(Outcome::Done)
    }
}

fn value(line: &Line) -> serde_json::Value {
    json!({
        "time": line.at.duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64()),
        "level": line.level.word(),
        "class": line.class,
        "message": line.message,
    })
}
