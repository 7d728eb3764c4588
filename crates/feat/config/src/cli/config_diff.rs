//! `config diff`: what differs from what was saved, or from a file.

use crate::cli_support::{document, number};
use crate::manager::{self, failed};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::diff;
use thalweg_graph::Control;

/// `config diff`
pub struct ConfigDiff;

/// The command.
pub static COMMAND: ConfigDiff = ConfigDiff;

impl Command<Control> for ConfigDiff {
    fn path(&self) -> &'static str {
        "config diff"
    }

    fn usage(&self) -> &'static str {
        "[<file> | rollback <n>]"
    }

    fn help(&self) -> &'static str {
        "Show how the running configuration differs from what was saved last\n\
         Or from a revision, or from a file. `+' is what runs, `-' the other."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let other = match (args.is_empty(), args.peek()) {
            (true, _) => manager::revision(c, 0),
            (_, Some("rollback")) => {
                args.word("rollback")?;
                let n = number(args)?;
                args.end()?;
                manager::revision(c, n)
            }
            _ => {
                let file = args.word("file")?;
                args.end()?;
                document(c, Some(file))
            }
        };
        let other = other.map_err(failed)?;
        let running = manager::running(c).map_err(failed)?;
        let all = diff(other.root(), running.root());
        if out.wants_json() {
            let rows = all
                .iter()
                .map(|d| serde_json::json!({ "path": d.path, "other": d.old, "running": d.new }));
            out.json(rows.collect());
        }
        all.iter().for_each(|d| out.line(d));
        Ok(Outcome::Done)
    }
}
