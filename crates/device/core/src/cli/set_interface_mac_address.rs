//! `set interface mac address`: sets an interface's MAC address.

use crate::command_line::{interface_arg, interface_names, refused};
use crate::interface;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set interface mac address`
pub struct SetInterfaceMacAddress;

/// The command.
pub static COMMAND: SetInterfaceMacAddress = SetInterfaceMacAddress;

impl Command<Control> for SetInterfaceMacAddress {
    fn path(&self) -> &'static str {
        "set interface mac address"
    }

    fn usage(&self) -> &'static str {
        "<interface> <mac>"
    }

    fn help(&self) -> &'static str {
        "Change the MAC address of an interface"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let mac = args.mac("MAC address")?;
        args.end()?;
        interface::set_mac(c, sw_if, mac).map_err(refused)?;
        out.json(serde_json::json!({ "index": sw_if.get(), "mac": mac.to_string() }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { interface_names(c) } else { Vec::new() }
    }
}
