//! `set interface mtu`: MTU of a device or a protocol.

use crate::command_line::{interface_arg, interface_maybe, interface_names, refused};
use crate::interface::{self, MtuOf};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set interface mtu`
pub struct SetInterfaceMtu;

/// The command.
pub static COMMAND: SetInterfaceMtu = SetInterfaceMtu;

impl Command<Control> for SetInterfaceMtu {
    fn path(&self) -> &'static str {
        "set interface mtu"
    }

    fn usage(&self) -> &'static str {
        "[packet|ip4|ip6|mpls] <bytes> <interface>"
    }

    fn help(&self) -> &'static str {
        "Set the MTU in bytes, without Ethernet header\n\
         Without a protocol, sets the MTU of the device and the L3 MTU. `packet' sets the L3 MTU,\n\
         `ip4', `ip6' and `mpls' that of one protocol (0: as L3)."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let proto = args.one_of(&["packet", "ip4", "ip6", "mpls"])?;
        // Both orders are in use: `mtu 1500 pg0' and `mtu pg0 1500'.
        let mut mtu = args.maybe(|a| a.u32("MTU"));
        let named = interface_maybe(c, args);
        // `15OO' is meant as a number.
        let is_number = args.peek().is_some_and(|w| w.starts_with(|c: char| c.is_ascii_digit()));
        if mtu.is_none() && (named.is_some() || is_number) {
            mtu = Some(args.u32("MTU")?);
        }
        let sw_if = named.map_or_else(|| interface_arg(c, args), Ok)?;
        let mtu = mtu.map_or_else(|| args.u32("MTU"), Ok)?;
        args.end()?;
        let set = match proto {
            None => interface::set_link_mtu(c, sw_if, mtu),
            Some("packet") => interface::set_mtu(c, sw_if, MtuOf::L3, mtu),
            Some("ip4") => interface::set_mtu(c, sw_if, MtuOf::Ip4, mtu),
            Some("ip6") => interface::set_mtu(c, sw_if, MtuOf::Ip6, mtu),
            Some(_) => interface::set_mtu(c, sw_if, MtuOf::Mpls, mtu),
        };
        set.map_err(refused)?;
        out.json(serde_json::json!({ "index": sw_if.get(), "protocol": proto, "mtu": mtu }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        let mut words = interface_names(c);
        words.extend(["packet", "ip4", "ip6", "mpls"].map(String::from));
        words
    }
}
