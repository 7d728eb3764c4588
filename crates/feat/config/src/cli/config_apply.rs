//! `config apply`: the router becomes what a document says.

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
        "Make the router what a document says, by default the one that it keeps\n\
         Shows what changes, does it, and looks whether it is so. If a command fails, all that was\n\
         done is taken back. With `confirm', it is taken back after so many seconds unless\n\
         `config commit' says that it shall stay."
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
