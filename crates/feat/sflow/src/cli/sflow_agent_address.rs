//! `sflow agent-address`.

use crate::cli_support::refused;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;
use thalweg_sflow_agent::agent::AgentChoice;

/// The command.
pub static COMMAND: SFlowAgentAddress = SFlowAgentAddress;

/// The command's type.
pub struct SFlowAgentAddress;

impl Command<Control> for SFlowAgentAddress {
    fn path(&self) -> &'static str {
        "sflow agent-address"
    }
    fn usage(&self) -> &'static str {
        "<ip>|auto [dev <device>] [prefer <prefix>] [exclude <prefix>]"
    }
    fn help(&self) -> &'static str {
        "Set the agent address that identifies this router to collectors\n\
         `auto', the default, picks one of the host's addresses: of the given device, if any;\n\
         preferably in a preferred prefix; never in an excluded one. `prefer' and `exclude' may\n\
         be repeated. When the address changes, sequence numbers restart: collectors see a different\n\
         agent."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut choice = AgentChoice::default();
        if args.keyword("auto") {
            let prefix = "a prefix such as 10.0.0.0/8";
            while !args.is_empty() {
                match args.choice("option", &["dev", "prefer", "exclude"])? {
                    "dev" => choice.device = Some(args.word("device")?.to_owned()),
                    "prefer" => choice.preferred.push(args.parsed("prefer", prefix)?),
                    _ => choice.excluded.push(args.parsed("exclude", prefix)?),
                }
            }
        } else {
            let expected = "an IP address such as 192.0.2.1, or `auto'";
            choice.address = Some(args.parsed("agent address", expected)?);
        }
        args.end()?;
        crate::exporting::set_agent(cx, choice).map_err(refused)?;
        Ok(Outcome::Done)
    }
}
