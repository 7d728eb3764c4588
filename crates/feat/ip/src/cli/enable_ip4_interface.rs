//! `enable ip4 interface`: makes an interface speak IPv4 without an address.

use crate::address::set_enabled;
use crate::cli_args::address_failed;
use crate::family::{Version, version_text};
use std::marker::PhantomData;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;
use thalweg_tables::Address;

/// `enable ip4 interface <interface>`, and the same for another version.
pub struct EnableIpInterface<A>(pub PhantomData<fn(A)>);

/// The command.
pub static COMMAND: EnableIpInterface<u32> = EnableIpInterface(PhantomData);

impl<A: Address> Command<Control> for EnableIpInterface<A> {
    fn path(&self) -> &'static str {
        match Version::of::<A>() {
            Version::V4 => "enable ip4 interface",
            Version::V6 => "enable ip6 interface",
        }
    }

    fn usage(&self) -> &'static str {
        "<interface>"
    }

    fn help(&self) -> &'static str {
        version_text!(A: "Accept ", NAME, " packets on an interface without an ", NAME, " address\n\
                     Without one and without this, an interface drops ", NAME, ".")
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        args.end()?;
        set_enabled::<A>(c, sw_if, true).map_err(address_failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}
