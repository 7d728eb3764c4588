//! `config plan`: commands that lead to a document's configuration.

use crate::cli_support::{Shown, document};
use crate::work::{self, View};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_config::declare::{Catalog, Document};
use thalweg_graph::Control;

/// `config plan`
pub struct ConfigPlan;

/// The command.
pub static COMMAND: ConfigPlan = ConfigPlan;

impl Command<Control> for ConfigPlan {
    fn path(&self) -> &'static str {
        "config plan"
    }

    fn usage(&self) -> &'static str {
        "[<file>]"
    }

    fn help(&self) -> &'static str {
        "Show the commands that applying a document would run, in order\n\
         Nothing is changed. The output can be run with `exec'."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let file = if args.is_empty() { None } else { Some(args.word("file")?) };
        args.end()?;
        let (target, format) = (document(c, file)?, out.format());
        let source = target.clone();
        let job = move |catalog: &Catalog<Control>, running: Document| {
            Ok(Shown::plan(&running.plan_to(&*target.read(catalog)?), format))
        };
        work::answer(c, View::InForce, Some(&source), out, job, |_, plan, out| {
            plan.show(out);
            Ok(())
        })
    }
}
