//! `nat44 vrf table`.

use crate::cli_support::failed;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// `nat44 vrf table`
pub struct Nat44VrfTable;

/// The command.
pub static COMMAND: Nat44VrfTable = Nat44VrfTable;

impl Command<Control> for Nat44VrfTable {
    fn path(&self) -> &'static str {
        "nat44 vrf table"
    }

    fn usage(&self) -> &'static str {
        "add|del <table>"
    }

    fn help(&self) -> &'static str {
        "Limit the hosts of a routing table to the tables of its `nat44 vrf route`s\n\
         Without any, they stay in their own. With del, the limit is removed: they reach all tables with\n\
         an outside interface."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let add = args.choice("action", &["add", "del"])? == "add";
        let table = args.u32("table")?;
        args.end()?;
        state::set_vrf_table(c, TableId(table), add).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
