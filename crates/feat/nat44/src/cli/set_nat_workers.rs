//! `set nat workers`.

use crate::cli_support::failed;
use crate::{cli_args, state};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set nat workers`
pub struct SetNatWorkers;

/// The command.
pub static COMMAND: SetNatWorkers = SetNatWorkers;

impl Command<Control> for SetNatWorkers {
    fn path(&self) -> &'static str {
        "set nat workers"
    }

    fn usage(&self) -> &'static str {
        "<list>|all"
    }

    fn help(&self) -> &'static str {
        "Set the workers that own sessions, such as 0,2-3\n\
         Packets received by other workers are handed over. All sessions end, because hosts and ports are\n\
         redistributed."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let expected = "`all', or worker numbers such as 0,2-3";
        let named = match args.keyword("all") {
            true => None,
            false => Some(
                cli_args::numbers(args.word("workers")?)
                    .ok_or_else(|| args.bad_last("workers", expected))?,
            ),
        };
        args.end()?;
        state::set_workers(c, named.as_deref()).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
