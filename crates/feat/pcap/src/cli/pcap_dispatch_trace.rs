//! `pcap dispatch trace`: captures what each node gets.

use crate::dispatch::{self, MAX_RECORDS, Status};
use crate::{PcapError, Plan};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, in_background};
use thalweg_engine::cli::trace_add::{input_nodes, node_arg};
use thalweg_graph::Control;
use thalweg_graph::trace::MAX_TRACES;

/// `pcap dispatch trace on|off|status`
pub struct PcapDispatchTrace;

/// The command.
pub static COMMAND: PcapDispatchTrace = PcapDispatchTrace;

const WORDS: [&str; 10] = [
    "on",
    "enable",
    "off",
    "disable",
    "status",
    "max",
    "packets-to-capture",
    "file",
    "buffer-trace",
    "post-mortem",
];

impl Command<Control> for PcapDispatchTrace {
    fn path(&self) -> &'static str {
        "pcap dispatch trace"
    }

    fn usage(&self) -> &'static str {
        "on [max <records>] [file <name>] [buffer-trace <node> <packets>] | off | status"
    }

    fn help(&self) -> &'static str {
        "Capture traced packets as each node gets them, for Wireshark\n\
         Each node's turn with each packet is a record: the node's name, interfaces and marks, the\n\
         trace so far, and the packet's bytes. Defaults: at most 1000 records. `buffer-trace' traces\n\
         the next packets of a node, as `trace add' does; without it, those are captured that are\n\
         traced anyway. `off' writes the file to /tmp, named by `file' or dispatch.pcap."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let failed = |error: PcapError| CliError::failed(error);
        let (mut on, mut max, mut file) = (None, Plan::default().packets, String::new());
        let (mut traced, mut asks) = (None, args.is_empty());
        while !args.is_empty() {
            match args.choice("option", &WORDS)? {
                "on" | "enable" => on = Some(true),
                "off" | "disable" => on = Some(false),
                "status" => asks = true,
                "max" | "packets-to-capture" => {
                    max = args.number("records", 1, MAX_RECORDS.into())? as u32;
                }
                "file" => file = args.word("file")?.to_owned(),
                "buffer-trace" => {
                    let node = node_arg(c, args)?;
                    traced = Some((node, args.number("packets", 1, u32::MAX.into())? as u32));
                }
                _ => {
                    return Err(CliError::failed(
                        "no captures after a crash: a panic prints its node and packet, and \
                         `thalctl tech-support' has them",
                    ));
                }
            }
        }
        if asks {
            show(dispatch::status(c), out);
            return Ok(Outcome::Done);
        }
        match (on, traced) {
            (Some(false), _) => {
                let ended = dispatch::stop(c).map_err(failed)?;
                return in_background(
                    move || ended.write(),
                    move |_, written, out: &mut Output| {
                        let (path, records) = written.map_err(failed)?;
                        let path = path.display().to_string();
                        out.line(format_args!("{records} records written to {path}"));
                        out.json(json!({ "file": path, "records": records }));
                        Ok(None)
                    },
                );
            }
            (Some(true), _) => dispatch::start(c, max, &file).map_err(failed)?,
            // More packets of another node for a capture that runs.
            (None, Some(_)) => {}
            (None, None) => return Err(args.bad("capture", "`on', `off' or `status'")),
        }
        if let Some((node, count)) = traced {
            dispatch::trace(c, node, count.min(MAX_TRACES as u32)).map_err(failed)?;
        }
        out.json(json!({ "max": max, "capturing": true }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [.., "buffer-trace"] => input_nodes(c),
            [.., "max" | "packets-to-capture" | "file"] => Vec::new(),
            _ => WORDS.map(String::from).into(),
        }
    }
}

fn show(status: Option<Status>, out: &mut Output) {
    let Some(Status { taken, max, path, nodes }) = status else {
        out.json(json!({ "capturing": false }));
        return out.line("pcap dispatch capture disabled");
    };
    let path = path.display().to_string();
    out.line(format_args!("pcap dispatch capture enabled: {taken} of {max} pkts..."));
    out.line(format_args!("capture to file {path}"));
    for (node, count) in &nodes {
        out.line(format_args!("Buffer trace of {count} pkts from {node} enabled..."));
    }
    let nodes: Vec<_> =
        nodes.iter().map(|(n, count)| json!({ "node": n, "packets": count })).collect();
    out.json(json!({
        "capturing": true, "records": taken, "max": max, "file": path, "traced": nodes,
    }));
}
