//! `nat44 vrf route`.

use crate::cli_support::failed;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// `nat44 vrf route`
pub struct Nat44VrfRoute;

/// The command.
pub static COMMAND: Nat44VrfRoute = Nat44VrfRoute;

impl Command<Control> for Nat44VrfRoute {
    fn path(&self) -> &'static str {
        "nat44 vrf route"
    }

    fn usage(&self) -> &'static str {
        "add|del table <table> <table>"
    }

    fn help(&self) -> &'static str {
        "Add a route to another routing table for the hosts of a table, or delete it\n\
         Routes are tried in the order they were added; the first table with a route out of one of its\n\
         own interfaces gets the session."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let add = args.choice("action", &["add", "del"])? == "add";
        if !args.keyword("table") {
            return Err(args.bad("table of the hosts", "`table' and its number"));
        }
        let table = TableId(args.u32("table of the hosts")?);
        let to = TableId(args.u32("table to reach")?);
        args.end()?;
        state::set_vrf_route(c, table, to, add).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
