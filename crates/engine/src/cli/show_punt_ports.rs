//! `show punt ports`: the UDP ports that `set punt` has punted.

use crate::punt;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `show punt ports`
pub struct ShowPuntPorts;

/// The command.
pub static COMMAND: ShowPuntPorts = ShowPuntPorts;

impl Command<Control> for ShowPuntPorts {
    fn path(&self) -> &'static str {
        "show punt ports"
    }

    fn help(&self) -> &'static str {
        "Show the UDP ports that `set punt' has punted"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        out.list(punt::ports(c), |port| {
            let row = json!({
                "protocol": if port.v6 { "ip6" } else { "ip4" },
                "port": port.number.map_or(json!("all"), |n| json!(n)),
            });
            (port.to_string(), row)
        });
        Ok(Outcome::Done)
    }
}
