//! `nat44 add address`.

use crate::cli_args::PoolWords;
use crate::cli_support::failed;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `nat44 add address`
pub struct Nat44AddAddress;

/// The command.
pub static COMMAND: Nat44AddAddress = Nat44AddAddress;

impl Command<Control> for Nat44AddAddress {
    fn path(&self) -> &'static str {
        "nat44 add address"
    }

    fn usage(&self) -> &'static str {
        "<first> [- <last>] [tenant-vrf <table>] [twice-nat] [del]"
    }

    fn help(&self) -> &'static str {
        "Add pool addresses for inside hosts, or delete them with their sessions\n\
         With tenant-vrf, only hosts of that routing table use them. With twice-nat, they replace the\n\
         addresses of external hosts. The router answers ARP requests for them."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (PoolWords { first, last, table, twice }, add) = PoolWords::take(args)?;
        state::set_addresses(c, (first, last), table, twice, add).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
