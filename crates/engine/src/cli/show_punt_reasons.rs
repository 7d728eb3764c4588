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
        out.list(punt::reasons(c), |r| {
            let (d, number, class) = (r.decl, r.reason.number(), r.decl.class.name());
            let receiver = r.receiver.map_or_else(String::new, |node| format!(" to:{node}"));
            let rate = r.rate;
            let line = format!(
                "[{number}] {} from:[{} ] class:{class} limit:{rate}{receiver}",
                d.name, d.from
            );
            let row = json!({
                "id": number, "name": d.name, "from": d.from, "class": class, "limit": rate,
                "burst": r.burst, "receiver": r.receiver,
            });
            (line, row)
        });
        Ok(Outcome::Done)
    }
}
