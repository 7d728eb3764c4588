//! `sflow uuid`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;
use thalweg_sflow_agent::host::parse_uuid;

/// The command.
pub static COMMAND: SFlowUuid = SFlowUuid;

/// The command's type.
pub struct SFlowUuid;

impl Command<Control> for SFlowUuid {
    fn path(&self) -> &'static str {
        "sflow uuid"
    }
    fn usage(&self) -> &'static str {
        "<uuid> | machine"
    }
    fn help(&self) -> &'static str {
        "Set the UUID that identifies this host to collectors\n\
         The default is the machine's UUID, which cloned virtual machines may share."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let uuid = if args.keyword("machine") {
            None
        } else {
            let expected = "a UUID such as 5fd8a3f0-7d0c-4a3e-9a52-1c1e3b1f0a77, or machine";
            Some(args.with("uuid", expected, parse_uuid)?)
        };
        args.end()?;
        crate::exporting::set_uuid(cx, uuid);
        Ok(Outcome::Done)
    }
}
