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
        "Name the workers that have sessions, such as 0,2-3\n\
         Packets that others receive are handed over. All sessions end: hosts inside and ports outside are\n\
         shared out anew."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let expected = "`all', or numbers of workers, such as 0,2-3";
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
