//! `config apply`: applies a document.

use crate::apply::Apply;
use crate::cli_support::{document, seconds};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `config apply`
pub struct ConfigApply;

/// The command.
pub static COMMAND: ConfigApply = ConfigApply;

impl Command<Control> for ConfigApply {
    fn path(&self) -> &'static str {
        "config apply"
    }

    fn usage(&self) -> &'static str {
        "[<file>] [confirm <seconds>]"
    }

    fn help(&self) -> &'static str {
        "Apply a document, by default the router's own file\n\
         Shows the plan, runs it, and verifies the result. If a command fails, everything is\n\
         rolled back. With `confirm', everything is rolled back after that many seconds unless\n\
         `config commit' confirms it."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let confirm_first = args.peek() == Some("confirm");
        let file = if args.is_empty() || confirm_first { None } else { Some(args.word("file")?) };
        let confirm = seconds(args)?;
        args.end()?;
        let target = document(c, file)?;
        Apply::begin(c, target, confirm, out)
    }
}
