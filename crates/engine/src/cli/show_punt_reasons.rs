//! `show punt reasons`: why packets are punted, and who takes them.

use crate::punt;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show punt reasons`
pub struct ShowPuntReasons;

/// The command.
pub static COMMAND: ShowPuntReasons = ShowPuntReasons;

impl Command<Control> for ShowPuntReasons {
    fn path(&self) -> &'static str {
        "show punt reasons"
    }

    fn help(&self) -> &'static str {
        "Show why packets are punted, and which node takes them\n\
         The limit is in packets per second and worker. Packets that no node takes are refused or\n\
         dropped as usual."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let mut rows = Vec::new();
        for r in punt::reasons(c) {
            let (d, number) = (r.decl, r.reason.number());
            let receiver = r.receiver.map_or_else(String::new, |node| format!(" to:{node}"));
            out.line(format_args!(
                "[{number}] {} from:[{} ] class:{} limit:{}{receiver}",
                d.name,
                d.from,
                d.class.name(),
                r.rate
            ));
            rows.push(json!({
                "id": number, "name": d.name, "from": d.from, "class": d.class.name(),
                "limit": r.rate, "burst": r.burst, "receiver": r.receiver,
            }));
        }
        out.json(rows.into());
        Ok(Outcome::Done)
    }
}
