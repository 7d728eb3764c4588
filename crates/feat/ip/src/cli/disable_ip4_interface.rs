//! `disable ip4 interface`: makes an interface drop IPv4 while it has no address.

use crate::address::set_enabled;
use crate::cli_args::address_failed;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `disable ip4 interface <interface>`
pub struct DisableIp4Interface;

/// The command.
pub static COMMAND: DisableIp4Interface = DisableIp4Interface;

impl Command<Control> for DisableIp4Interface {
    fn path(&self) -> &'static str {
        "disable ip4 interface"
    }

    fn usage(&self) -> &'static str {
        "<interface>"
    }

    fn help(&self) -> &'static str {
        "Drop IPv4 packets on an interface while it has no IPv4 address\n\
         Takes `enable ip4 interface' back."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        args.end()?;
        set_enabled::<u32>(c, sw_if, false).map_err(address_failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}
