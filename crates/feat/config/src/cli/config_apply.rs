//! `config apply`: applies a document.

use crate::apply::{Apply, Mode};
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
        "[<file>] [best-effort] [confirm <seconds>] [verbose]"
    }

    fn help(&self) -> &'static str {
        "Apply a document, by default the router's own file\n\
         Shows the plan, runs it, and verifies the result. If a command fails, everything is\n\
         rolled back. With `best-effort', what is wrong or cannot be applied yet is kept as\n\
         unresolved instead. With `confirm', everything is rolled back after that many seconds\n\
         unless `config commit' confirms it. A plan of more than a hundred commands is shown as a\n\
         summary; `verbose' shows all."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let option_first = matches!(args.peek(), Some("confirm" | "best-effort" | "verbose"));
        let file = if args.is_empty() || option_first { None } else { Some(args.word("file")?) };
        let mode = match args.keyword("best-effort") {
            true => Mode::BestEffort,
            false => Mode::AllOrNothing,
        };
        let confirm = seconds(args)?;
        let all = args.keyword("verbose");
        args.end()?;
        let target = document(c, file)?;
        Apply::begin(c, target, mode, confirm, all, out)
    }
}
