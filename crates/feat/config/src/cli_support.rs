//! Helpers shared by the commands.

use crate::manager::{self, failed};
use crate::work::Source;
use serde_json::{Value, json};
use std::time::Duration;
use thalweg_cli::{Args, CliError, Format, Output};
use thalweg_config::declare::{Kinds, Plan, Step};
use thalweg_graph::Control;

/// Maximum time for `confirm`, in seconds.
const MAX_CONFIRM: u64 = 86_400;

/// Source of a document: the given file, or the router's own.
pub(crate) fn document(c: &Control, file: Option<&str>) -> Result<Source, CliError> {
    Ok(match (file, manager::store(c)) {
        (Some(file), Ok(own)) if own.is_at(file.as_ref()) => Source::Own(own),
        (Some(file), _) => Source::File(file.into()),
        (None, own) => Source::Own(own.map_err(failed)?),
    })
}

/// Source of the revision `back` steps before the last one saved.
pub(crate) fn revision(c: &Control, back: usize) -> Result<Source, CliError> {
    Ok(Source::Revision(manager::store(c).map_err(failed)?, back))
}

/// Takes `confirm <seconds>`, if given.
pub(crate) fn seconds(args: &mut Args<'_>) -> Result<Option<Duration>, CliError> {
    match args.keyword("confirm") {
        true => Ok(Some(Duration::from_secs(args.number("seconds", 1, MAX_CONFIRM)?))),
        false => Ok(None),
    }
}

/// Takes a revision number.
pub(crate) fn number(args: &mut Args<'_>) -> Result<usize, CliError> {
    Ok(args.number("revision", 0, crate::store::KEPT as u64)? as usize)
}

/// Form in which a plan is shown.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Format of the output.
    pub(crate) format: Format,
    /// All of a long one, and not only a summary.
    pub(crate) all: bool,
}

/// Output in the requested format. Large outputs take long to format, so this is done off the main
/// thread.
pub(crate) struct Shown(String);

impl Shown {
    /// Formats text or JSON.
    pub(crate) fn new(
        format: Format,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> Shown {
        let machines = (format != Format::Text).then(json);
        Shown(machines.and_then(|value| format.write(&value)).unwrap_or_else(text))
    }

    /// Text that is ready.
    pub(crate) fn text(text: String) -> Shown {
        Shown(text)
    }

    /// Output of a plan: of a long one a summary, unless `all` of it is asked for.
    pub(crate) fn plan(kinds: Kinds<'_>, plan: &Plan, shape: Shape) -> Shown {
        Shown::new(shape.format, || plan_json(plan), || kinds.plan(plan, shape.all))
    }

    /// The commands of a plan and nothing else.
    pub(crate) fn commands(plan: &Plan, format: Format) -> Shown {
        let lines = || plan.commands().flat_map(|command| [command, "\n"]).collect();
        Shown::new(format, || plan_json(plan), lines)
    }

    /// Prints the output.
    pub(crate) fn show(self, out: &mut Output) {
        out.written(self.0);
    }
}

fn plan_json(plan: &Plan) -> Value {
    let step = |s: &Step| json!({ "phase": s.phase.word(), "command": s.command, "path": s.path });
    plan.steps.iter().map(step).collect()
}
