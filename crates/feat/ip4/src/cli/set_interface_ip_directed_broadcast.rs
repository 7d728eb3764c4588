//! `set interface ip directed-broadcast`: sends packets to a subnet's broadcast address, or not.

use crate::directed;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_feat_ip::address_failed;
use thalweg_graph::Control;

/// `set interface ip directed-broadcast <interface> enable|disable`
pub struct SetInterfaceIpDirectedBroadcast;

/// The command.
pub static COMMAND: SetInterfaceIpDirectedBroadcast = SetInterfaceIpDirectedBroadcast;

impl Command<Control> for SetInterfaceIpDirectedBroadcast {
    fn path(&self) -> &'static str {
        "set interface ip directed-broadcast"
    }

    fn usage(&self) -> &'static str {
        "<interface> enable|disable"
    }

    fn help(&self) -> &'static str {
        "Send packets from elsewhere to the broadcast addresses of an interface's subnets, or not\n\
         By default they are dropped (RFC 2644)."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let on = args.choice("switch", &["enable", "disable"])? == "enable";
        args.end()?;
        directed::set(c, sw_if, on).map_err(address_failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            _ => ["enable", "disable"].map(str::to_owned).to_vec(),
        }
    }
}
