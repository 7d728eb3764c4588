//! `clear interfaces`: clears the counters of `show interface`.

use crate::interface;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `clear interfaces`
pub struct ClearInterfaces;

/// The command.
pub static COMMAND: ClearInterfaces = ClearInterfaces;

impl Command<Control> for ClearInterfaces {
    fn path(&self) -> &'static str {
        "clear interfaces"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["clear hardware-interfaces"]
    }

    fn help(&self) -> &'static str {
        "Clear the counters of `show interface'\n\
         Counters of the statistics segment are cleared, too; those exported by sFlow keep counting."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let cleared = interface::clear_counters(c, None);
        out.json(serde_json::json!({ "cleared": cleared }));
        Ok(Outcome::Done)
    }
}
