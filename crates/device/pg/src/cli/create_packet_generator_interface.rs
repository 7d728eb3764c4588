//! `create packet-generator interface`: a port without hardware.

use crate::command_line::failed;
use crate::port::port_id;
use crate::stream::{self, Mode};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `create packet-generator interface`
pub struct CreatePacketGeneratorInterface;

/// The command.
pub static COMMAND: CreatePacketGeneratorInterface = CreatePacketGeneratorInterface;

impl Command<Control> for CreatePacketGeneratorInterface {
    fn path(&self) -> &'static str {
        "create packet-generator interface"
    }

    fn usage(&self) -> &'static str {
        "pg<n> [mode ethernet|ip4|ip6]"
    }

    fn help(&self) -> &'static str {
        "Create port pg<n>\n\
         An existing port is left unchanged. In the IP modes its packets have no Ethernet\n\
         header."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let id = args.with("port", "a name such as pg0", port_id)?;
        let mut mode = Mode::Ethernet;
        if args.keyword("mode") {
            mode = match args.choice("mode", &["ethernet", "ip4", "ip6"])? {
                "ip4" => Mode::Ip4,
                "ip6" => Mode::Ip6,
                _ => Mode::Ethernet,
            };
        }
        args.end()?;
        let sw_if = stream::create_port(c, id, mode).map_err(failed)?;
        let name = c.interface_name(sw_if);
        out.json(serde_json::json!({ "name": name, "index": sw_if.get() }));
        out.line(name);
        Ok(Outcome::Done)
    }
}
