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

    fn usage(&self) -> &'static str {
        "[verbose]"
    }

    fn help(&self) -> &'static str {
        "Show settings that are not in force, and why\n\
         Of the document applied last: what is wrong in it, and what needs something that is not\n\
         there, such as a device. They are saved with the rest, and tried again when their device or\n\
         an interface comes, and else now and then. Of more than a hundred there is a summary;\n\
         `verbose' shows all."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let all = args.keyword("verbose");
        args.end()?;
        let parts = manager::unresolved(c);
        if out.wants_json() {
            let row = |p: &thalweg_config::declare::Part| serde_json::json!({ "path": p.path(), "value": p.node(), "reason": p.why });
            out.json(parts.iter().map(row).collect::<serde_json::Value>());
        }
        let catalog = manager::catalog(c).map_err(manager::failed)?;
        write!(out, "{}", catalog.kinds().parts(&parts, all));
        if parts.is_empty() {
            out.line("all of the configuration is in force");
        }
        Ok(Outcome::Done)
    }
}
