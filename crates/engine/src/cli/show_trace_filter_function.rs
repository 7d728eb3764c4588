//! `show trace filter function`: which function selects the packets that are traced.

use crate::api::trace_filter_function_dump::FUNCTION;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show trace filter function`
pub struct ShowTraceFilterFunction;

/// The command.
pub static COMMAND: ShowTraceFilterFunction = ShowTraceFilterFunction;

impl Command<Control> for ShowTraceFilterFunction {
    fn path(&self) -> &'static str {
        "show trace filter function"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["show pcap filter function"]
    }

    fn help(&self) -> &'static str {
        "Show which function selects the packets that are traced or captured\n\
         There is one: it looks at the patterns of `classify filter'."
    }

    fn run(
        &self,
        _: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        out.json(serde_json::json!([{ "name": FUNCTION, "selected": true }]));
        out.line(format_args!("(*) name:{FUNCTION}"));
        Ok(Outcome::Done)
    }
}
