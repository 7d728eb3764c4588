//! `config rollback`: applies a saved revision.

use crate::apply::{Apply, Mode};
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
        "<n> [confirm <seconds>] [verbose]"
    }

    fn help(&self) -> &'static str {
        "Apply a saved revision: the last (0), the one before (1) …\n\
         What cannot be applied, such as an interface without its device, is kept as unresolved.\n\
         This does not save it; use `config commit'. See `show configuration revisions'. A plan of\n\
         more than a hundred commands is shown as a summary; `verbose' shows all."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let n = number(args)?;
        let confirm = seconds(args)?;
        let all = args.keyword("verbose");
        args.end()?;
        let target = revision(c, n)?;
        Apply::begin(c, target, Mode::BestEffort, confirm, all, out)
    }
}
