//! `config diff`: differences from the last saved configuration, or from a file.

use crate::cli_support::{Shown, document, number, revision};
use crate::work::{self, View};
use serde_json::json;
use std::sync::Arc;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::{Catalog, Difference, Document, differences};
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
        "Show how the running configuration differs from the last saved one\n\
         Or from a revision, or from a file. `+' marks the running configuration, `-' the other."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let is_file = args.peek().is_some_and(|word| word != "rollback");
        let other = match (args.is_empty(), args.peek()) {
            (true, _) => revision(c, 0),
            (_, Some("rollback")) => {
                args.word("rollback")?;
                let n = number(args)?;
                args.end()?;
                revision(c, n)
            }
            _ => {
                let file = args.word("file")?;
                args.end()?;
                document(c, Some(file))
            }
        };
        let other = other?;
        let source = other.clone();
        let format = out.format();
        let job = move |catalog: &Catalog<Control>, running: Document| {
            let other = match is_file {
                true => other.read(catalog)?,
                // What was unresolved when it was saved is a part of it.
                false => {
                    let (valid, parts) = other.load(catalog, &running)?;
                    Arc::new(catalog.with_parts(Document::clone(&valid), &parts))
                }
            };
            let all = differences(&other, &running, is_file);
            let row = |d: &Difference| json!({ "path": d.path, "other": d.old, "running": d.new });
            let lines = || all.iter().map(|d| format!("{d}\n")).collect();
            Ok(Shown::new(format, || all.iter().map(row).collect(), lines))
        };
        work::answer(c, View::Whole, Some(&source), out, job, |_, differences, out| {
            differences.show(out);
            Ok(())
        })
    }
}
