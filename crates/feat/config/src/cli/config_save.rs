//! `config save`: saves the running configuration.

use crate::manager::{self, ConfigError, Manager, failed};
use crate::store::{DOCUMENT, Store};
use crate::work::{self, View};
use std::path::PathBuf;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::Document;
use thalweg_files::client;
use thalweg_graph::Control;

/// `config save`
pub struct ConfigSave;

/// The command.
pub static COMMAND: ConfigSave = ConfigSave;

/// Place to save at.
enum Target {
    /// The router's own file.
    Own(Store),
    /// Another file.
    Other(PathBuf),
}

impl Command<Control> for ConfigSave {
    fn path(&self) -> &'static str {
        "config save"
    }

    fn usage(&self) -> &'static str {
        "[<file>]"
    }

    fn help(&self) -> &'static str {
        "Save the running configuration, by default in the router's own file\n\
         Only that file has revisions. While a change waits for confirmation, it is saved by\n\
         `config commit' alone. Other files are in /tmp, or below a directory that `unix { files }'\n\
         names; `thalweg config dump' prints the document, to be saved anywhere."
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
        manager::check_settled(c).map_err(failed)?;
        let target = match (file, manager::store(c)) {
            (Some(file), Ok(own)) if own.is_at(&file) => Target::Own(own),
            (Some(file), _) => Target::Other(file),
            (None, own) => Target::Own(own.map_err(failed)?),
        };
        // After the rollback, the router would start with what nobody has confirmed.
        let pending = c.state::<Manager>().borrow().pending.is_some();
        if pending && matches!(target, Target::Own(_)) {
            return Err(failed(ConfigError::Unconfirmed));
        }
        let job = move |_: &_, running: Document, _| {
            let text = running.to_yaml()?;
            match target {
                Target::Other(file) => {
                    client::replace(&file, &DOCUMENT, text.as_bytes()).map(|()| true)
                }
                Target::Own(own) => own.save(&text),
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
