//! `show nat workers`.

use crate::{Nat44, view};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show nat workers`
pub struct ShowNatWorkers;

/// The command.
pub static COMMAND: ShowNatWorkers = ShowNatWorkers;

impl Command<Control> for ShowNatWorkers {
    fn path(&self) -> &'static str {
        "show nat workers"
    }

    fn help(&self) -> &'static str {
        "Show the workers that own sessions"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let owners = c.state::<Nat44>().borrow().owners(c.workers());
        let names: Vec<String> = view::worker_threads(c, &owners).map(|(_, t)| t.name).collect();
        out.line(format_args!("{} workers", names.len()));
        names.iter().for_each(|name| out.line(format_args!("  {name}")));
        out.json(json!({ "workers": owners, "names": names }));
        Ok(Outcome::Done)
    }
}
