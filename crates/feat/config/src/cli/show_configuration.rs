//! `show configuration`: the running configuration.

use crate::cli_support::Shown;
use crate::manager::ConfigError;
use crate::work::{self, View};
use thalweg_cli::{Args, CliError, Command, Format, Outcome, Output};
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
         run on an empty router, reproduce this configuration."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let commands = args.one_of(&["commands"])?.is_some();
        args.end()?;
        let format = out.format();
        if commands {
            let job = move |_: &_, running: Document, _| {
                Ok(Shown::commands(&Document::default().plan_to(&running), format))
            };
            return work::answer(c, View::InForce, None, out, job, |_, plan, out| {
                plan.show(out);
                Ok(())
            });
        }
        let job = move |_: &_, running: Document, _| {
            if format == Format::Text {
                return Ok(Shown::text(running.to_yaml()?));
            }
            let value = serde_json::to_value(running.root());
            let value = value.map_err(|e| ConfigError::Unavailable(e.to_string()))?;
            Ok(Shown::new(format, || value, String::new))
        };
        work::answer(c, View::Whole, None, out, job, |_, document, out| {
            document.show(out);
            Ok(())
        })
    }
}
