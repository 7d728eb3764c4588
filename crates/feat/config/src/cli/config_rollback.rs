//! `config rollback`: the router becomes what it was saved as.

use crate::apply::Apply;
use crate::cli_support::{number, revision, seconds};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `config rollback`
pub struct ConfigRollback;

/// The command.
pub static COMMAND: ConfigRollback = ConfigRollback;

impl Command<Control> for ConfigRollback {
    fn path(&self) -> &'static str {
        "config rollback"
    }

    fn usage(&self) -> &'static str {
        "<n> [confirm <seconds>]"
    }

    fn help(&self) -> &'static str {
        "Make the router what was saved: last (0), before that (1) …\n\
         It is not saved by that; `config commit' does. See `show configuration revisions'."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let n = number(args)?;
        let confirm = seconds(args)?;
        args.end()?;
        let target = revision(c, n)?;
        Apply::begin(c, target, confirm, out)
    }
}
