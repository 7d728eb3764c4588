//! `l2fib del`.

use crate::cli_support::{bridge_arg, bridge_ids, failed};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: L2fibDel = L2fibDel;

/// The command's type.
pub struct L2fibDel;

impl Command<Control> for L2fibDel {
    fn path(&self) -> &'static str {
        "l2fib del"
    }
    fn usage(&self) -> &'static str {
        "<mac> <bridge domain>"
    }
    fn help(&self) -> &'static str {
        "Delete a MAC address from a bridge domain"
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mac = args.mac("MAC address")?;
        let id = bridge_arg(args)?;
        args.end()?;
        crate::remove_address(c, id, mac).map_err(failed)?;
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.len() == 1 { bridge_ids(c) } else { Vec::new() }
    }
}
