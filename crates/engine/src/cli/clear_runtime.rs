//! `clear runtime`: resets the counters of `show runtime`.

use crate::{ask_workers, report};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;
use thalweg_graph::worker::Core;

/// `clear runtime`
pub struct ClearRuntime;

/// The command.
pub static COMMAND: ClearRuntime = ClearRuntime;

impl Command<Control> for ClearRuntime {
    fn path(&self) -> &'static str {
        "clear runtime"
    }

    fn help(&self) -> &'static str {
        "Reset the counters of `show runtime' and `show runtime loops'\n\
         The statistics segment is reset too; counters that sFlow exports are not."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        report::clear_runtime(c);
        out.json(serde_json::json!({ "cleared": true }));
        // A maximum has no baseline: its owner clears it.
        ask_workers(c, out, Core::clear_max, |_, _, _| Ok(()))
    }
}
