//! `clear nat44 sessions`.

use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `clear nat44 sessions`
pub struct ClearNat44Sessions;

/// The command.
pub static COMMAND: ClearNat44Sessions = ClearNat44Sessions;

impl Command<Control> for ClearNat44Sessions {
    fn path(&self) -> &'static str {
        "clear nat44 sessions"
    }

    fn help(&self) -> &'static str {
        "End all NAT44 sessions"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        state::clear_sessions(c);
        Ok(Outcome::Done)
    }
}
