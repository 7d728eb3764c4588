//! `flow del`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: FlowDel = FlowDel;

/// The command's type.
pub struct FlowDel;

impl Command<Control> for FlowDel {
    fn path(&self) -> &'static str {
        "flow del"
    }
    fn usage(&self) -> &'static str {
        "<set> [strict] [<match>]"
    }
    fn help(&self) -> &'static str {
        "Delete the rules of a set that are within this match, or all of them. With `strict', \
         only the rule with exactly this match, priority and table."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let set = args.u32("set of rules")?;
        let strict = args.exact("strict");
        let text = args.rest();
        let gone = if text.is_empty() && !strict {
            crate::delete(cx, set, None, false, false)
        } else {
            let within = crate::sets::parse_match(cx, text).map_err(CliError::failed)?;
            crate::delete(cx, set, Some(&within), strict, text.contains("table="))
        };
        if gone == 0 {
            out.line("no rule was deleted");
        }
        Ok(Outcome::Done)
    }
}
