//! `delete packet-generator interface`: deletes a port, its streams and its capture.

use crate::command_line::{failed, port_names};
use crate::stream;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface_arg;
use thalweg_graph::Control;

/// `delete packet-generator interface`
pub struct DeletePacketGeneratorInterface;

/// The command.
pub static COMMAND: DeletePacketGeneratorInterface = DeletePacketGeneratorInterface;

impl Command<Control> for DeletePacketGeneratorInterface {
    fn path(&self) -> &'static str {
        "delete packet-generator interface"
    }

    fn usage(&self) -> &'static str {
        "<interface>"
    }

    fn help(&self) -> &'static str {
        "Delete a port with its streams and its capture"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        args.end()?;
        let name = c.interface_name(sw_if);
        stream::delete_port(c, sw_if).map_err(failed)?;
        out.json(serde_json::json!({ "deleted": name }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        port_names(c)
    }
}
