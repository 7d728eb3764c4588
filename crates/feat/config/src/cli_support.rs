//! What the commands have in common.

use crate::manager::{self, failed};
use crate::work::Source;
use std::time::Duration;
use thalweg_cli::{Args, CliError, Output};
use thalweg_config::declare::Plan;
use thalweg_graph::Control;

/// The longest time within which something may be confirmed, in seconds.
const MAX_CONFIRM: u64 = 86_400;

/// The document in a file, or in the one that the router keeps.
pub(crate) fn document(c: &Control, file: Option<&str>) -> Result<Source, CliError> {
    let file = match file {
        Some(file) => file.into(),
        None => manager::store(c).map_err(failed)?.file().to_owned(),
    };
    Ok(Source::File(file))
}

/// What was saved so many times before the last.
pub(crate) fn revision(c: &Control, back: usize) -> Result<Source, CliError> {
    Ok(Source::Revision(manager::store(c).map_err(failed)?, back))
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

/// A plan as it is shown; long ones take long to write, and are to be written beside the main thread.
pub(crate) struct ShownPlan {
    json: Option<serde_json::Value>,
    text: String,
}

impl ShownPlan {
    /// Writes a plan; `json` says whether machines will read it.
    pub(crate) fn new(plan: &Plan, json: bool) -> ShownPlan {
        ShownPlan { json: json.then(|| plan_json(plan)), text: plan.to_string() }
    }

    /// Writes the commands of a plan and nothing else.
    pub(crate) fn commands(plan: &Plan, json: bool) -> ShownPlan {
        let text = plan.commands().flat_map(|command| [command, "\n"]).collect();
        ShownPlan { json: json.then(|| plan_json(plan)), text }
    }

    /// Shows it.
    pub(crate) fn show(self, out: &mut Output) {
        self.json.into_iter().for_each(|json| out.json(json));
        out.whole(self.text);
    }
}

/// A plan for machines.
fn plan_json(plan: &Plan) -> serde_json::Value {
    let step = |s: &thalweg_config::declare::Step| serde_json::json!({ "phase": s.phase.word(), "command": s.command, "path": s.path });
    plan.steps.iter().map(step).collect()
}
