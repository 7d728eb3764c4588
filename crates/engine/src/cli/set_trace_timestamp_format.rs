//! `set trace timestamp-format`: how traces print the time.

use crate::traces::{Stamp, Tracing};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `set trace timestamp-format relative|unix|datetime`
pub struct SetTraceTimestampFormat;

/// The command.
pub static COMMAND: SetTraceTimestampFormat = SetTraceTimestampFormat;

impl Command<Control> for SetTraceTimestampFormat {
    fn path(&self) -> &'static str {
        "set trace timestamp-format"
    }

    fn usage(&self) -> &'static str {
        "relative|unix|datetime"
    }

    fn help(&self) -> &'static str {
        "Set how `show trace' prints the time of a step\n\
         `relative' is the time since the start and the default, `unix' seconds since 1970,\n\
         `datetime' the date and time of day, in UTC."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let word = args.choice("format", &Stamp::WORDS)?;
        args.end()?;
        let format = Stamp::of(word);
        c.state::<Tracing>().borrow_mut().stamp = format;
        out.json(serde_json::json!({ "timestamp-format": format.word() }));
        Ok(Outcome::Done)
    }
}
