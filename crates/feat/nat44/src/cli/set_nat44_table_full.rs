//! `set nat44 table-full`.

use crate::cli_support::failed;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set nat44 table-full`
pub struct SetNat44TableFull;

/// The command.
pub static COMMAND: SetNat44TableFull = SetNat44TableFull;

impl Command<Control> for SetNat44TableFull {
    fn path(&self) -> &'static str {
        "set nat44 table-full"
    }

    fn usage(&self) -> &'static str {
        "recycle | refuse"
    }

    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { vec!["recycle".into(), "refuse".into()] } else { Vec::new() }
    }

    fn help(&self) -> &'static str {
        "Set the handling of new sessions when the session table is full: recycle the oldest half-open\n\
         session, or refuse the new one"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let refuse = args.choice("policy", &["recycle", "refuse"])? == "refuse";
        args.end()?;
        state::set_refuse_when_full(c, refuse).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
