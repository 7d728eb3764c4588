//! `show configuration unresolved`: settings that are not in force.

use crate::manager;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show configuration unresolved`
pub struct ShowConfigurationUnresolved;

/// The command.
pub static COMMAND: ShowConfigurationUnresolved = ShowConfigurationUnresolved;

impl Command<Control> for ShowConfigurationUnresolved {
    fn path(&self) -> &'static str {
        "show configuration unresolved"
    }

    fn help(&self) -> &'static str {
        "Show settings that are not in force, and why\n\
         Of the document applied last: what is wrong in it, and what needs something that is not\n\
         there, such as a device. They are saved with the rest, and tried again every ten seconds\n\
         and when an interface is created."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let parts = manager::unresolved(c);
        if out.wants_json() {
            let row = |p: &thalweg_config::declare::Part| serde_json::json!({ "path": p.path(), "value": p.node(), "reason": p.why });
            out.json(parts.iter().map(row).collect::<serde_json::Value>());
        }
        for part in &parts {
            out.line(format_args!("{part}"));
        }
        if parts.is_empty() {
            out.line("all of the configuration is in force");
        }
        Ok(Outcome::Done)
    }
}
