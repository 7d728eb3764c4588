//! `packet-generator disable-stream`: stops one stream, or all.

use crate::command_line::{failed, stream_names};
use crate::stream::{self, settling};
use thalweg_cli::{Args, CliError, Command, Outcome, Output, in_background};
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
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let name = if args.is_empty() { None } else { Some(args.word("stream")?) };
        args.end()?;
        stream::enable_streams(c, name, false).map_err(failed)?;
        let name = name.map(ToOwned::to_owned);
        let settling = settling(c);
        in_background(
            || settling.wait(),
            move |_, (), out: &mut Output| {
                out.json(serde_json::json!({ "stream": name, "enabled": false }));
                Ok(None)
            },
        )
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        if before.is_empty() { stream_names(c) } else { Vec::new() }
    }
}
