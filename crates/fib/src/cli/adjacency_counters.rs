//! `adjacency counters`: counts packets by route and adjacency.

use crate::Forwarding;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `adjacency counters enable|disable`
pub struct AdjacencyCounters;

/// The command.
pub static COMMAND: AdjacencyCounters = AdjacencyCounters;

impl Command<Control> for AdjacencyCounters {
    fn path(&self) -> &'static str {
        "adjacency counters"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["adj counters"]
    }

    fn usage(&self) -> &'static str {
        "enable|disable"
    }

    fn help(&self) -> &'static str {
        "Count packets and bytes by route and adjacency\n\
         `show ip fib' prints the counters, and the statistics segment has them as `/net/route/to'\n\
         and `/net/route/via', by forwarding object. Routes with the same paths share an object."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let on = args.enable_disable("counters")?;
        args.end()?;
        c.state::<Forwarding>().borrow_mut().set_counting(on);
        out.json(serde_json::json!({ "counters": on }));
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => ["enable", "disable"].map(String::from).into(),
            _ => Vec::new(),
        }
    }
}
