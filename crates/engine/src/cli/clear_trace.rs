//! `clear trace`: clears packet traces and stops tracing.

use crate::ask_workers;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::worker::Core;

/// `clear trace`
pub struct ClearTrace;

/// The command.
pub static COMMAND: ClearTrace = ClearTrace;

impl Command<Control> for ClearTrace {
    fn path(&self) -> &'static str {
        "clear trace"
    }

    fn help(&self) -> &'static str {
        "Clear packet traces and stop tracing"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        out.json(serde_json::json!({ "cleared": true }));
        ask_workers(c, out, Core::trace_clear, |_, _, _| Ok(()))
    }
}
