//! `packet-generator configure`: changes a stream that is not running.

use crate::command_line::{failed, parameter, stream_names};
use crate::stream::{self, StreamChange};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `packet-generator configure`
pub struct PacketGeneratorConfigure;

/// The command.
pub static COMMAND: PacketGeneratorConfigure = PacketGeneratorConfigure;

impl Command<Control> for PacketGeneratorConfigure {
    fn path(&self) -> &'static str {
        "packet-generator configure"
    }

    fn usage(&self) -> &'static str {
        "<name> [limit <n>] [rate <packets/s>] [size <min>-<max>] [maxframe <n>]"
    }

    fn help(&self) -> &'static str {
        "Change the parameters of a stream\n\
         It must be disabled. `size <min>+<max>' draws sizes at random."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let name = args.word("stream")?;
        let mut change = StreamChange::default();
        while !args.is_empty() {
            if !parameter(args, &mut change)? {
                return Err(args.bad("parameter", "`limit', `rate', `size' or `maxframe'"));
            }
        }
        stream::change_stream(c, name, change).map_err(failed)?;
        out.json(serde_json::json!({ "stream": name }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => stream_names(c),
            _ => ["limit", "rate", "size", "maxframe"].map(String::from).into(),
        }
    }
}
