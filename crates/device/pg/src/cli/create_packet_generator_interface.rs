//! `create packet-generator interface`: a port without hardware.

use crate::command_line::failed;
use crate::port::port_id;
use crate::stream::{self, Mode};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::refused;
use thalweg_device::interface;
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
        "pg<n> [mode ethernet|ip4|ip6] [hw-addr <mac>]"
    }

    fn help(&self) -> &'static str {
        "Create port pg<n>\n\
         An existing port is left unchanged. In the IP modes its packets have no Ethernet\n\
         header and no MAC address."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let id = args.with("port", "a name such as pg0", port_id)?;
        let (mut mode, mut mac) = (Mode::Ethernet, None);
        while !args.is_empty() {
            match args.choice("option", &["mode", "hw-addr"])? {
                "mode" => {
                    mode = match args.choice("mode", &["ethernet", "ip4", "ip6"])? {
                        "ip4" => Mode::Ip4,
                        "ip6" => Mode::Ip6,
                        _ => Mode::Ethernet,
                    }
                }
                _ => mac = Some(args.mac("MAC address")?),
            }
        }
        if let Some(mac) = mac {
            interface::check_mac(mac).map_err(refused)?;
            if mode != Mode::Ethernet {
                return Err(
                    args.bad_last("hw-addr", "none: packets of this mode have no MAC address")
                );
            }
        }
        let sw_if = stream::create_port(c, id, mode).map_err(failed)?;
        if let Some(mac) = mac {
            interface::set_mac(c, sw_if, mac).map_err(refused)?;
        }
        let name = c.interface_name(sw_if);
        out.json(serde_json::json!({ "name": name, "index": sw_if.get() }));
        out.line(name);
        Ok(Outcome::Done)
    }
}
