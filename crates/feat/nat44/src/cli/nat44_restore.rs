//! `nat44 restore`.

use crate::cli_support::{Storing, stored};
use crate::store;
use std::path::Path;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `nat44 restore`
pub struct Nat44Restore;

/// The command.
pub static COMMAND: Nat44Restore = Nat44Restore;

impl Command<Control> for Nat44Restore {
    fn path(&self) -> &'static str {
        "nat44 restore"
    }

    fn usage(&self) -> &'static str {
        "<file> [if-present]"
    }

    fn help(&self) -> &'static str {
        "Restore saved sessions from a file, if their addresses and mappings still exist"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let file = args.word("file")?;
        let optional = args.keyword("if-present");
        args.end()?;
        let work = store::restore(c, Path::new(file), optional).map_err(stored)?;
        Ok(Outcome::pending(Storing::new(work)))
    }
}
