//! `enable ip4 interface`: makes an interface speak IPv4 without an address.

use crate::address::set_enabled;
use crate::cli_args::address_failed;
use crate::family::{Version, version_text};
use std::marker::PhantomData;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;
use thalweg_tables::Address;

/// `enable ip4 interface <interface>`, or `disable`, and the same for another version.
pub struct IpInterface<A> {
    on: bool,
    version: PhantomData<fn(A)>,
}

impl<A> IpInterface<A> {
    /// The command that enables it, or the one that disables it.
    pub const fn new(on: bool) -> IpInterface<A> {
        IpInterface { on, version: PhantomData }
    }
}

/// The command.
pub static COMMAND: IpInterface<u32> = IpInterface::new(true);

impl<A: Address> Command<Control> for IpInterface<A> {
    fn path(&self) -> &'static str {
        match (self.on, Version::of::<A>()) {
            (true, Version::V4) => "enable ip4 interface",
            (true, Version::V6) => "enable ip6 interface",
            (false, Version::V4) => "disable ip4 interface",
            (false, Version::V6) => "disable ip6 interface",
        }
    }

    fn usage(&self) -> &'static str {
        "<interface>"
    }

    fn help(&self) -> &'static str {
        if self.on {
            version_text!(A: "Accept ", NAME, " packets on an interface without an ", NAME, " address\n\
                         Without one and without this, an interface drops ", NAME, ".")
        } else {
            version_text!(A: "Drop ", NAME, " packets on an interface while it has no ", NAME, " address\n\
                         Takes the command that accepts them back.")
        }
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        args.end()?;
        set_enabled::<A>(c, sw_if, self.on).map_err(address_failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}
