//! `show udp ports`: the UDP ports of the router itself.

use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_feat_ip::local;
use thalweg_graph::Control;

/// `show udp ports`
pub struct ShowUdpPorts;

/// The command.
pub static COMMAND: ShowUdpPorts = ShowUdpPorts;

impl Command<Control> for ShowUdpPorts {
    fn path(&self) -> &'static str {
        "show udp ports"
    }

    fn help(&self) -> &'static str {
        "Show the UDP ports that features of the router listen on, and their nodes"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        out.line(format_args!("{:>5} {:<5} node", "port", "proto"));
        out.list(local::udp_ports::<u32>(c), |(port, node)| {
            let row = json!({ "port": port, "protocol": "ip4", "node": node });
            (format!("{port:>5} {:<5} {node}", "ip4"), row)
        });
        Ok(Outcome::Done)
    }
}
