//! `show load witness`.

use std::time::Duration;

use serde_json::{Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output, in_background};
use thalweg_device::interface;
use thalweg_graph::Control;
use thalweg_load::stream::Side;

use crate::witness::{Dropped, What};

/// `show load witness`
pub struct ShowLoadWitness;

/// The command.
pub static COMMAND: ShowLoadWitness = ShowLoadWitness;

/// Time after which a worker is taken not to respond: under too much load it takes long.
const PATIENCE: Duration = Duration::from_secs(30);

impl Command<Control> for ShowLoadWitness {
    fn path(&self) -> &'static str {
        "show load witness"
    }

    fn usage(&self) -> &'static str {
        ""
    }

    fn help(&self) -> &'static str {
        "List the packets of the load tester that were dropped\n\
         The first ones of each stream and reason since `load witness', which this ends."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let answers = crate::ask_dropped(c);
        in_background(
            move || answers.recv_timeout(PATIENCE),
            |c, all, out: &mut Output| {
                let all = all.map_err(|_| CliError::failed("a worker does not respond"))?;
                out.list(&all, |dropped| {
                    let row = row(c, dropped);
                    (line(&row), row)
                });
                Ok(None)
            },
        )
    }
}

fn row(c: &Control, dropped: &Dropped) -> Value {
    let (node, reason) = crate::place(c, dropped);
    let view = interface::view(c, dropped.rx);
    let interface = view.map_or_else(|_| String::new(), |view| view.name);
    let mut row = match dropped.what {
        What::Stream(tag) => json!({
            "stream": tag.stream,
            "side": if tag.side == Side::A { "a" } else { "b" },
            "sequence": tag.sequence,
            "bits": tag.bits.0,
        }),
        What::Talk(flow) => json!({
            "protocol": match flow.protocol {
                thalweg_load::talk::Protocol::Tcp => "tcp",
                thalweg_load::talk::Protocol::Udp => "udp",
            },
            "source": [flow.source.0.to_string(), flow.source.1.to_string()],
            "destination": [flow.destination.0.to_string(), flow.destination.1.to_string()],
            "flags": flow.flags,
            "seq": flow.seq,
        }),
    };
    row["at"] = dropped.at.into();
    row["node"] = node.into();
    row["reason"] = reason.into();
    row["interface"] = interface.into();
    row
}

fn line(row: &Value) -> String {
    let word = |key: &str| row[key].as_str().unwrap_or_default();
    let what = match row["stream"].as_u64() {
        Some(stream) => format!("packet {} of stream {stream}{}", row["sequence"], word("side")),
        None => {
            let end = |key: &str| {
                let part = |at: usize| row[key][at].as_str().unwrap_or_default();
                format!("{} port {}", part(0), part(1))
            };
            format!("{} from {} to {}", word("protocol"), end("source"), end("destination"))
        }
    };
    format!("{what}: {}, {}, received by {}", word("node"), word("reason"), word("interface"))
}
