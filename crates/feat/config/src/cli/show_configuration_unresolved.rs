//! `show configuration unresolved`: settings that are not in force.

use crate::manager;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::Part;
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
         unresolved: they name something that is not there yet, such as a device, a table or a\n\
         network namespace, and are set when it comes. missing: they were in force and went away\n\
         outside the router, and are back when it is. failed: the router or the kernel refused them;\n\
         they are tried again now and then, and when an interface goes. All are saved with the rest.\n\
         Of more than a hundred there is a summary; `verbose' shows all."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let all = args.keyword("verbose");
        args.end()?;
        let (parts, missing) = (manager::unresolved(c), manager::missing(c));
        let parts: Vec<&Part> = parts.iter().chain(&missing).collect();
        if out.wants_json() {
            let row = |p: &&Part| {
                serde_json::json!({
                    "path": p.path(),
                    "state": p.state.word(),
                    "value": p.node(),
                    "waits-for": p.waits_for,
                    "reason": p.why,
                })
            };
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
