//! `config save`: keeps what runs.

use crate::manager::{self, failed};
use crate::store;
use std::path::Path;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
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
        "Save the running configuration, by default in the file that the router keeps\n\
         That file has revisions; another one does not."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let file = if args.is_empty() { None } else { Some(args.word("file")?) };
        args.end()?;
        let changed = match file {
            None => manager::save(c),
            Some(file) => manager::running(c).and_then(|running| {
                store::write(Path::new(file), &running.to_yaml()?)?;
                Ok(true)
            }),
        };
        let changed = changed.map_err(failed)?;
        out.json(serde_json::json!({ "changed": changed }));
        out.line(if changed { "saved" } else { "saved already" });
        Ok(Outcome::Done)
    }
}
