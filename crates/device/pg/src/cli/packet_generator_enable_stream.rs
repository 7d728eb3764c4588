//! `packet-generator enable-stream`: starts one stream, or all.

use crate::command_line::{failed, stream_names};
use crate::stream;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `packet-generator enable-stream`
pub struct PacketGeneratorEnableStream;

/// The command.
pub static COMMAND: PacketGeneratorEnableStream = PacketGeneratorEnableStream;

impl Command<Control> for PacketGeneratorEnableStream {
    fn path(&self) -> &'static str {
        "packet-generator enable-stream"
    }

    fn usage(&self) -> &'static str {
        "[<name>]"
    }

    fn help(&self) -> &'static str {
        "Start one stream, or all\n\
         The source port and its link come up. A finished stream starts again."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let name = if args.is_empty() { None } else { Some(args.word("stream")?) };
        args.end()?;
        stream::enable_streams(c, name, true).map_err(failed)?;
        out.json(serde_json::json!({ "stream": name, "enabled": true }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { stream_names(c) } else { Vec::new() }
    }
}
