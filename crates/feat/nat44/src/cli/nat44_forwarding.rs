//! `nat44 forwarding`.

use crate::cli_support::failed;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `nat44 forwarding`
pub struct Nat44Forwarding;

/// The command.
pub static COMMAND: Nat44Forwarding = Nat44Forwarding;

impl Command<Control> for Nat44Forwarding {
    fn path(&self) -> &'static str {
        "nat44 forwarding"
    }

    fn usage(&self) -> &'static str {
        "enable|disable"
    }

    fn help(&self) -> &'static str {
        "Forward packets from outside that have no session, or drop them"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let on = args.enable_disable("state")?;
        args.end()?;
        state::set_forwarding(c, on).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
