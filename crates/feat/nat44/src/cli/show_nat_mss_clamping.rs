//! `show nat mss-clamping`.

use crate::Nat44;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show nat mss-clamping`
pub struct ShowNatMssClamping;

/// The command.
pub static COMMAND: ShowNatMssClamping = ShowNatMssClamping;

impl Command<Control> for ShowNatMssClamping {
    fn path(&self) -> &'static str {
        "show nat mss-clamping"
    }

    fn help(&self) -> &'static str {
        "Show the MSS limit"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let mss = c.state::<Nat44>().borrow().mss();
        match mss {
            0 => out.line("mss-clamping disabled"),
            _ => out.line(format_args!("mss-clamping {mss}")),
        }
        out.json(json!({ "mss": (mss != 0).then_some(mss) }));
        Ok(Outcome::Done)
    }
}
