//! `sflow agent-address`.

use crate::cli_support::{refused, required};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SFlowAgentAddress = SFlowAgentAddress;

/// The command's type.
pub struct SFlowAgentAddress;

impl Command<Control> for SFlowAgentAddress {
    fn path(&self) -> &'static str {
        "sflow agent-address"
    }
    fn usage(&self) -> &'static str {
        "<ip>|auto"
    }
    fn help(&self) -> &'static str {
        "Set the address that names this router to collectors\n\
         `auto', the default, elects one of the host's addresses. Under another address, sequence\n\
         numbers begin anew: to collectors it is another router."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        required(args, "an address or auto")?;
        let address = match args.keyword("auto") {
            true => None,
            false => {
                Some(args.parsed("agent address", "an IP address such as 192.0.2.1, or `auto'")?)
            }
        };
        args.end()?;
        crate::exporting::set_agent_address(cx, address).map_err(refused)?;
        Ok(Outcome::Done)
    }
}
