//! `set nat workers`.

use crate::cli_args;
use crate::section::{tuned, tuning};
use crate::state::set_workers;
use thalweg_cli::{Args, CliError};
use thalweg_engine::setting::{Form, Global, Optional};

/// A list of workers, such as `0,2-3`, in order and each once.
pub struct WorkerList;

impl Form for WorkerList {
    type Value = Vec<u16>;

    fn usage(&self) -> &'static str {
        "<list>"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<Vec<u16>, CliError> {
        let expected = "`all', or worker numbers such as 0,2-3";
        let mut all = args.with("workers", expected, cli_args::numbers)?;
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    fn words(&self, all: &Vec<u16>) -> String {
        cli_args::numbers_text(all)
    }
}

/// The workers that own sessions; all without one.
pub static SETTING: Global<Optional<WorkerList>> = Global {
    command: "set nat workers",
    help: "Set the workers that own sessions, such as 0,2-3\n\
           Packets received by other workers are handed over. All sessions end, because hosts and ports are\n\
           redistributed.",
    form: Optional { usage: "<list>|all", none: "all", form: WorkerList },
    key: "thalweg.nat44.workers",
    default: || None,
    get: |c| tuned(c, |nat| Some(nat.named_owners().to_vec()).filter(|named| !named.is_empty())),
    set: |c, named| Ok(set_workers(c, named.as_deref())?),
    rare: tuning(),
};
