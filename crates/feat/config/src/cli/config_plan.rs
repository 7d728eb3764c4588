//! `config plan`: commands that lead to a document's configuration.

use crate::cli_support::{Shape, Shown, document};
use crate::work::{self, Loaded, Must, View};
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
        "[<file>] [verbose]"
    }

    fn help(&self) -> &'static str {
        "Show the commands that applying a document would run, in order\n\
         Nothing is changed. The output can be run with `exec'. Of more than a hundred commands it\n\
         is a summary, in comments; `verbose' shows all."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let no_file = args.is_empty() || args.peek() == Some("verbose");
        let file = if no_file { None } else { Some(args.word("file")?) };
        let all = args.keyword("verbose");
        args.end()?;
        let (target, shape) = (document(c, file)?, Shape { format: out.format(), all });
        let job = move |catalog: &Catalog<Control>, running: Document, (target, _): Loaded| {
            let plan = running.plan_to(&target);
            Ok(Shown::plan(catalog.kinds(), &plan, shape))
        };
        let other = Some((target, Must::BeRight));
        work::answer(c, View::InForce, other, out, job, |_, plan, out| {
            plan.show(out);
            Ok(())
        })
    }
}
