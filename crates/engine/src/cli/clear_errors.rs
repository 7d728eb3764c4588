//! `clear errors`: resets the counters of `show errors`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `clear errors`
pub struct ClearErrors;

/// The command.
pub static COMMAND: ClearErrors = ClearErrors;

impl Command<Control> for ClearErrors {
    fn path(&self) -> &'static str {
        "clear errors"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["clear node counters"]
    }

    fn help(&self) -> &'static str {
        "Reset the counters of `show errors'\n\
         The statistics segment is reset too; counters that sFlow exports are not."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let errors = c.errors().len() as u32;
        let row = |w| (0..errors).map(|e| c.worker_stats(w).error(e).get()).collect();
        c.baseline.errors = (0..c.workers()).map(row).collect();
        c.baseline.cleared = Some(std::time::SystemTime::now());
        out.json(serde_json::json!({ "cleared": errors }));
        Ok(Outcome::Done)
    }
}
