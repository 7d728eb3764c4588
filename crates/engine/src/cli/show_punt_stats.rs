//! `show punt stats`: punted packets by reason.

use crate::punt;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show punt stats`
pub struct ShowPuntStats;

/// The command.
pub static COMMAND: ShowPuntStats = ShowPuntStats;

impl Command<Control> for ShowPuntStats {
    fn path(&self) -> &'static str {
        "show punt stats"
    }

    fn help(&self) -> &'static str {
        "Show punted packets by reason: passed to a node, and dropped by the limit"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        out.list(punt::reasons(c), |r| {
            let (name, packets, bytes, limited) = (r.decl.name, r.packets, r.bytes, r.limited);
            let line = format!("{name} packets:{packets} bytes:{bytes} limited:{limited}");
            let row = json!({
                "name": name, "packets": packets, "bytes": bytes, "limited": limited,
            });
            (line, row)
        });
        Ok(Outcome::Done)
    }
}
