//! `show trace timestamp-format`: how traces print the time.

use crate::traces::Tracing;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show trace timestamp-format`
pub struct ShowTraceTimestampFormat;

/// The command.
pub static COMMAND: ShowTraceTimestampFormat = ShowTraceTimestampFormat;

impl Command<Control> for ShowTraceTimestampFormat {
    fn path(&self) -> &'static str {
        "show trace timestamp-format"
    }

    fn help(&self) -> &'static str {
        "Show how `show trace' prints the time of a step"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let word = c.state::<Tracing>().borrow().stamp.word();
        out.json(serde_json::json!({ "timestamp-format": word }));
        out.line(format_args!("trace timestamp format: {word}"));
        Ok(Outcome::Done)
    }
}
