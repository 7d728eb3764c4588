//! `config diff`: differences from the last saved configuration, or from a file.

use crate::cli_support::{Shown, document, number, revision};
use crate::work::{self, Loaded, Must, View};
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
        "[<file> | rollback <n>] [verbose]"
    }

    fn help(&self) -> &'static str {
        "Show how the running configuration differs from the last saved one\n\
         Or from a revision, or from a file. `+' marks the running configuration, `-' the other. Of\n\
         more than a hundred lines there is a summary; `verbose' shows all."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut is_file, mut file, mut back) = (false, None, 0);
        match args.peek() {
            None | Some("verbose") => {}
            Some("rollback") => {
                args.word("rollback")?;
                back = number(args)?;
            }
            Some(_) => (is_file, file) = (true, Some(args.word("file")?)),
        }
        let verbose = args.keyword("verbose");
        args.end()?;
        let other = match is_file {
            true => (document(c, file)?, Must::BeRight),
            // A revision has parts that were unresolved when it was saved.
            false => (revision(c, back)?, Must::BeReadable),
        };
        let format = out.format();
        let job = move |catalog: &Catalog<Control>, running: Document, (valid, parts): Loaded| {
            let other = match parts.is_empty() {
                true => valid,
                false => Arc::new(catalog.with_parts(Document::clone(&valid), &parts)),
            };
            let all = differences(&other, &running);
            let row = |d: &Difference| json!({ "path": d.path, "other": d.old, "running": d.new });
            let lines = || catalog.kinds().differences(&all, verbose);
            let shown = Shown::new(format, || all.iter().map(row).collect(), lines);
            // The answer need not wait until millions of texts are freed.
            work::drop_in_background((all, other, running));
            Ok(shown)
        };
        work::answer(c, View::Whole, Some(other), out, job, |_, differences, out| {
            differences.show(out);
            Ok(())
        })
    }
}
