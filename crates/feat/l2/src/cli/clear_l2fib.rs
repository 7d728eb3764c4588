//! `clear l2fib`.

use crate::Flush;
use crate::cli_support::flush;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: ClearL2fib = ClearL2fib;

/// The command's type.
pub struct ClearL2fib;

impl Command<Control> for ClearL2fib {
    fn path(&self) -> &'static str {
        "clear l2fib"
    }
    fn help(&self) -> &'static str {
        "Flush all MAC addresses of all bridge domains, static ones included"
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        flush(c, Flush::Everything, out)
    }
}
