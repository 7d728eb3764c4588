//! `nat mss-clamping`.

use crate::cli_support::failed;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `nat mss-clamping`
pub struct NatMssClamping;

/// The command.
pub static COMMAND: NatMssClamping = NatMssClamping;

impl Command<Control> for NatMssClamping {
    fn path(&self) -> &'static str {
        "nat mss-clamping"
    }

    fn usage(&self) -> &'static str {
        "<bytes> | disable"
    }

    fn help(&self) -> &'static str {
        "Limit the MSS of TCP connections through NAT44"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mss = match args.keyword("disable") {
            true => 0,
            false => args.number("segment size", state::MIN_MSS.into(), 65_535)? as u16,
        };
        args.end()?;
        state::set_mss(c, mss).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
