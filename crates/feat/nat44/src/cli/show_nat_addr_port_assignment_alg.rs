//! `show nat addr-port-assignment-alg`.

use crate::{Nat44, cli_args};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, counted};
use thalweg_graph::Control;

/// `show nat addr-port-assignment-alg`
pub struct ShowNatAddrPortAssignmentAlg;

/// The command.
pub static COMMAND: ShowNatAddrPortAssignmentAlg = ShowNatAddrPortAssignmentAlg;

impl Command<Control> for ShowNatAddrPortAssignmentAlg {
    fn path(&self) -> &'static str {
        "show nat addr-port-assignment-alg"
    }

    fn help(&self) -> &'static str {
        "Show the ports of pool addresses that sessions may use, and their number"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let scheme = c.state::<Nat44>().borrow().scheme();
        let (text, count) = (cli_args::scheme_text(scheme), scheme.count());
        let ports = counted(count.into(), "port");
        out.line(format_args!("NAT address and port assignment: {text}, {ports}"));
        out.json(json!({ "algorithm": text, "ports": count }));
        Ok(Outcome::Done)
    }
}
