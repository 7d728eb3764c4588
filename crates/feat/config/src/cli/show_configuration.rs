//! `show configuration`: what the router is set to be.

use crate::cli_support::ShownPlan;
use crate::manager::ConfigError;
use crate::work;
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
        let json = out.wants_json();
        if commands {
            let job = move |_: &_, running: Document| {
                Ok(ShownPlan::commands(&Document::default().plan_to(&running), json))
            };
            return work::answer(c, None, out, job, |_, plan, out| {
                plan.show(out);
                Ok(())
            });
        }
        let job = move |_: &_, running: Document| {
            let value = json.then(|| serde_json::to_value(running.root())).transpose();
            let value = value.map_err(|e| ConfigError::Unavailable(e.to_string()))?;
            Ok((value, running.to_yaml()?))
        };
        work::answer(c, None, out, job, |_, (value, text), out| {
            value.into_iter().for_each(|value| out.json(value));
            out.whole(text);
            Ok(())
        })
    }
}
