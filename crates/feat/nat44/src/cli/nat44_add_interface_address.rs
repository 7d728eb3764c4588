//! `nat44 add interface address`.

use crate::cli_support::failed;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `nat44 add interface address`
pub struct Nat44AddInterfaceAddress;

/// The command.
pub static COMMAND: Nat44AddInterfaceAddress = Nat44AddInterfaceAddress;

impl Command<Control> for Nat44AddInterfaceAddress {
    fn path(&self) -> &'static str {
        "nat44 add interface address"
    }

    fn usage(&self) -> &'static str {
        "<interface> [twice-nat] [del]"
    }

    fn help(&self) -> &'static str {
        "Use the current addresses of an interface as pool addresses"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let twice = args.keyword("twice-nat");
        let add = !args.exact("del");
        args.end()?;
        state::set_interface_address(c, sw_if, twice, add).map_err(failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { interface_names(c) } else { Vec::new() }
    }
}
