//! `packet-generator disable-stream`: stops one stream, or all.

use crate::command_line::{failed, stream_names};
use crate::stream;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `packet-generator disable-stream`
pub struct PacketGeneratorDisableStream;

/// The command.
pub static COMMAND: PacketGeneratorDisableStream = PacketGeneratorDisableStream;

impl Command<Control> for PacketGeneratorDisableStream {
    fn path(&self) -> &'static str {
        "packet-generator disable-stream"
    }

    fn usage(&self) -> &'static str {
        "[<name>]"
    }

    fn help(&self) -> &'static str {
        "Stop one stream, or all"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let name = if args.is_empty() { None } else { Some(args.word("stream")?) };
        args.end()?;
        stream::enable_streams(c, name, false).map_err(failed)?;
        out.json(serde_json::json!({ "stream": name, "enabled": false }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { stream_names(c) } else { Vec::new() }
    }
}
