//! `set nat44 session limit`.

use crate::cli_support::failed;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_wire::nat::tuple::MAX_TABLE;

/// `set nat44 session limit`
pub struct SetNat44SessionLimit;

/// The command.
pub static COMMAND: SetNat44SessionLimit = SetNat44SessionLimit;

impl Command<Control> for SetNat44SessionLimit {
    fn path(&self) -> &'static str {
        "set nat44 session limit"
    }

    fn usage(&self) -> &'static str {
        "<number> [vrf <table> | per-host]"
    }

    fn help(&self) -> &'static str {
        "Limit the sessions of a routing table, or of each host; 0 is unlimited\n\
         Existing sessions stay."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let most = args.number("sessions", 0, u64::from(u32::MAX))? as u32;
        let table = match () {
            () if args.keyword("per-host") => None,
            () if args.keyword("vrf") => {
                Some(TableId(args.number("table", 0, u64::from(MAX_TABLE))? as u32))
            }
            () => Some(TableId(0)),
        };
        args.end()?;
        state::set_limit(c, table, most).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
