//! `enable ip4 interface`: makes an interface speak IPv4 without an address.

use crate::address::set_enabled;
use crate::cli_args::address_failed;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `enable ip4 interface <interface>`, or `disable`.
pub struct Ip4Interface {
    pub(super) path: &'static str,
    pub(super) help: &'static str,
    pub(super) on: bool,
}

/// The command.
pub static COMMAND: Ip4Interface = Ip4Interface {
    path: "enable ip4 interface",
    help: "Accept IPv4 packets on an interface without an IPv4 address\n\
           Without one and without this, an interface drops IPv4.",
    on: true,
};

impl Command<Control> for Ip4Interface {
    fn path(&self) -> &'static str {
        self.path
    }

    fn usage(&self) -> &'static str {
        "<interface>"
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        args.end()?;
        set_enabled::<u32>(c, sw_if, self.on).map_err(address_failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}
