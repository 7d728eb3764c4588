//! `nat44 plugin`.

use crate::cli_support::failed;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `nat44 plugin enable|disable`
pub struct Nat44Plugin;

/// The command.
pub static COMMAND: Nat44Plugin = Nat44Plugin;

impl Command<Control> for Nat44Plugin {
    fn path(&self) -> &'static str {
        "nat44 plugin"
    }

    fn usage(&self) -> &'static str {
        "enable [sessions <number>] | disable"
    }

    fn help(&self) -> &'static str {
        "Enable address translation, or disable it and forget all its configuration\n\
         Each worker gets room for so many sessions, 64512 if nothing is said. Any other command of\n\
         the family enables it, too."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let on = args.enable_disable("state")?;
        let mut sessions = None;
        if on && args.keyword("sessions") {
            sessions = Some(args.number("sessions", 1, u64::from(state::MAX_SESSIONS))? as u32);
        }
        args.end()?;
        if on {
            state::enable(c, sessions).map_err(failed)?;
        } else {
            state::disable(c);
        }
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => vec!["enable".into(), "disable".into()],
            ["enable"] => vec!["sessions".into()],
            _ => Vec::new(),
        }
    }
}
