//! `config save`: saves the running configuration.

use crate::manager::{self, ConfigError, failed};
use crate::store;
use crate::work::{self, View};
use std::path::PathBuf;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::Document;
use thalweg_graph::Control;

/// `config save`
pub struct ConfigSave;

/// The command.
pub static COMMAND: ConfigSave = ConfigSave;

impl Command<Control> for ConfigSave {
    fn path(&self) -> &'static str {
        "config save"
    }

    fn usage(&self) -> &'static str {
        "[<file>]"
    }

    fn help(&self) -> &'static str {
        "Save the running configuration, by default in the router's own file\n\
         Only that file has revisions."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let file = if args.is_empty() { None } else { Some(args.word("file")?) };
        args.end()?;
        let file = file.map(PathBuf::from);
        let kept = if file.is_none() { Some(manager::store(c).map_err(failed)?) } else { None };
        let job = move |_: &_, running: Document| {
            let text = running.to_yaml()?;
            match (file, kept) {
                (Some(file), _) => store::write(&file, &text).map(|()| true),
                (None, Some(kept)) => kept.save(&text),
                (None, None) => return Err(ConfigError::NoFile),
            }
            .map_err(ConfigError::from)
        };
        work::answer(c, View::Whole, None, out, job, |_, changed, out| {
            out.json(serde_json::json!({ "changed": changed }));
            out.line(if changed { "saved" } else { "already saved" });
            Ok(())
        })
    }
}
