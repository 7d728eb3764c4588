//! `clear logging`: forgets the lines that `show logging` lists.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::log;

/// `clear logging`
pub struct ClearLogging;

/// The command.
pub static COMMAND: ClearLogging = ClearLogging;

impl Command<Control> for ClearLogging {
    fn path(&self) -> &'static str {
        "clear logging"
    }

    fn help(&self) -> &'static str {
        "Forget the lines that `show logging' lists\n\
         The log itself is not changed."
    }

    fn run(
        &self,
        _: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        log::clear();
        out.json(serde_json::json!({ "cleared": true }));
        Ok(Outcome::Done)
    }
}
