//! `set interface proxy-arp`: answers ARP for other hosts on an interface.

use crate::cli_support::proxy_failed;
use crate::proxy_arp;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `set interface proxy-arp <interface> [enable|disable]`
pub struct SetInterfaceProxyArp;

/// The command.
pub static COMMAND: SetInterfaceProxyArp = SetInterfaceProxyArp;

impl Command<Control> for SetInterfaceProxyArp {
    fn path(&self) -> &'static str {
        "set interface proxy-arp"
    }

    fn usage(&self) -> &'static str {
        "<interface> enable|disable"
    }

    fn help(&self) -> &'static str {
        "Answer ARP requests on an interface for the ranges of `set arp proxy', or not"
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
        proxy_arp::set_interface(c, sw_if, on).map_err(proxy_failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            _ => ["enable", "disable"].map(str::to_owned).to_vec(),
        }
    }
}
