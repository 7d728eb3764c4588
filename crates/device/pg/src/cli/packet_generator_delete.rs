//! `packet-generator delete`: deletes a stream.

use crate::command_line::{failed, stream_names};
use crate::stream::{self, settling};
use thalweg_cli::{Args, CliError, Command, Outcome, Output, in_background};
use thalweg_graph::Control;

/// `packet-generator delete`
pub struct PacketGeneratorDelete;

/// The command.
pub static COMMAND: PacketGeneratorDelete = PacketGeneratorDelete;

impl Command<Control> for PacketGeneratorDelete {
    fn path(&self) -> &'static str {
        "packet-generator delete"
    }

    fn usage(&self) -> &'static str {
        "<name>"
    }

    fn help(&self) -> &'static str {
        "Delete a stream, stopping it first"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let name = args.word("stream")?;
        args.end()?;
        stream::delete_stream(c, name).map_err(failed)?;
        let name = name.to_owned();
        let settling = settling(c);
        in_background(
            || settling.wait(),
            move |_, (), out: &mut Output| {
                out.json(serde_json::json!({ "deleted": name }));
                Ok(None)
            },
        )
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { stream_names(c) } else { Vec::new() }
    }
}
