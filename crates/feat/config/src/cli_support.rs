//! What the commands have in common.

use crate::manager::{self, ConfigError};
use std::path::Path;
use std::time::Duration;
use thalweg_cli::{Args, CliError, Output};
use thalweg_config::declare::{Document, Plan};
use thalweg_graph::Control;

/// The longest time within which something may be confirmed, in seconds.
const MAX_CONFIRM: u64 = 86_400;

/// The document in a file, or in the one that the router keeps.
pub(crate) fn document(c: &Control, file: Option<&str>) -> Result<Document, ConfigError> {
    match file {
        Some(file) => manager::read(c, Path::new(file)),
        None => manager::read(c, manager::store(c)?.file()),
    }
}

/// Takes `confirm <seconds>`, if it is there.
pub(crate) fn seconds(args: &mut Args<'_>) -> Result<Option<Duration>, CliError> {
    match args.keyword("confirm") {
        true => Ok(Some(Duration::from_secs(args.number("seconds", 1, MAX_CONFIRM)?))),
        false => Ok(None),
    }
}

/// Takes the number of a revision.
pub(crate) fn number(args: &mut Args<'_>) -> Result<usize, CliError> {
    Ok(args.number("revision", 0, crate::store::KEPT as u64)? as usize)
}

/// A plan for machines.
pub(crate) fn plan_json(plan: &Plan) -> serde_json::Value {
    let step = |s: &thalweg_config::declare::Step| serde_json::json!({ "phase": s.phase.word(), "command": s.command, "path": s.path });
    plan.steps.iter().map(step).collect()
}

/// Shows what is about to be done.
pub(crate) fn show_plan(plan: &Plan, out: &mut Output) {
    out.json(plan_json(plan));
    out.text(&plan.to_string());
    if plan.is_empty() {
        out.line("nothing to do");
    }
}
