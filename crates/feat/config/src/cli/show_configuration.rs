//! `show configuration`: what the router is set to be.

use crate::manager::{self, failed};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::Document;
use thalweg_graph::Control;

/// `show configuration`
pub struct ShowConfiguration;

/// The command.
pub static COMMAND: ShowConfiguration = ShowConfiguration;

impl Command<Control> for ShowConfiguration {
    fn path(&self) -> &'static str {
        "show configuration"
    }

    fn usage(&self) -> &'static str {
        "[commands]"
    }

    fn help(&self) -> &'static str {
        "Show the running configuration as a document, or as commands\n\
         The document is YAML with the keys of vppcfg, and Thalweg's own below `thalweg'. The commands,\n\
         run on an empty router, make it what this one is."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let commands = args.one_of(&["commands"])?.is_some();
        args.end()?;
        let running = manager::running(c).map_err(failed)?;
        if commands {
            let plan = Document::default().plan_to(&running);
            out.json(crate::cli_support::plan_json(&plan));
            plan.commands().for_each(|command| out.line(command));
            return Ok(Outcome::Done);
        }
        if out.wants_json() {
            out.json(serde_json::to_value(running.root()).map_err(CliError::failed)?);
        }
        out.text(&running.to_yaml().map_err(|e| failed(e.into()))?);
        Ok(Outcome::Done)
    }
}
