//! `disable ip4 interface`: makes an interface drop IPv4 while it has no address.

use crate::address::set_enabled;
use crate::cli_args::address_failed;
use crate::family::{Version, version_text};
use std::marker::PhantomData;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;
use thalweg_tables::Address;

/// `disable ip4 interface <interface>`, and the same for another version.
pub struct DisableIpInterface<A>(pub PhantomData<fn(A)>);

/// The command.
pub static COMMAND: DisableIpInterface<u32> = DisableIpInterface(PhantomData);

impl<A: Address> Command<Control> for DisableIpInterface<A> {
    fn path(&self) -> &'static str {
        match Version::of::<A>() {
            Version::V4 => "disable ip4 interface",
            Version::V6 => "disable ip6 interface",
        }
    }

    fn usage(&self) -> &'static str {
        "<interface>"
    }

    fn help(&self) -> &'static str {
        version_text!(A: "Drop ", NAME, " packets on an interface while it has no ", NAME, " address\n\
                     Takes the command that accepts them back.")
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        args.end()?;
        set_enabled::<A>(c, sw_if, false).map_err(address_failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}
