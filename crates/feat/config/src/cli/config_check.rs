//! `config check`: validates a document.

use crate::cli_support::document;
use crate::work::{self, Loaded, Must, View};
use thalweg_cli::{Args, CliError, Command, Outcome, Output, counted};
use thalweg_graph::Control;

/// `config check`
pub struct ConfigCheck;

/// The command.
pub static COMMAND: ConfigCheck = ConfigCheck;

impl Command<Control> for ConfigCheck {
    fn path(&self) -> &'static str {
        "config check"
    }

    fn usage(&self) -> &'static str {
        "[<file>]"
    }

    fn help(&self) -> &'static str {
        "Check that a document is valid and that the router supports all of it"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let file = if args.is_empty() { None } else { Some(args.word("file")?) };
        args.end()?;
        let other = (document(c, file)?, Must::BeRight);
        let job = |_: &_, _, (checked, _): Loaded| Ok(checked.items().len());
        work::answer(c, View::InForce, Some(other), out, job, |_, n, out| {
            out.json(serde_json::json!({ "valid": true, "settings": n }));
            out.line(format_args!("valid: {}", counted(n as u64, "setting")));
            Ok(())
        })
    }
}
