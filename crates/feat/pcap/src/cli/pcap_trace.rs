//! `pcap trace`: captures packets in a file.

use crate::{BYTES, MAX_PACKETS, Plan, reason, start, status, stop};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, in_background};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_engine::classify::{self, User};
use thalweg_graph::Control;

/// `pcap trace`
pub struct PcapTrace;

/// The command.
pub static COMMAND: PcapTrace = PcapTrace;

const WORDS: [&str; 13] = [
    "rx",
    "tx",
    "drop",
    "max",
    "max-bytes-per-pkt",
    "intfc",
    "file",
    "error",
    "filter",
    "preallocate-data",
    "free-data",
    "status",
    "off",
];

impl Command<Control> for PcapTrace {
    fn path(&self) -> &'static str {
        "pcap trace"
    }

    fn usage(&self) -> &'static str {
        "[rx] [tx] [drop] [max <packets>] [max-bytes-per-pkt <n>] [intfc <interface>|any] \
         [file <name>] [error <node>.<reason>] [filter] | status | off"
    }

    fn help(&self) -> &'static str {
        "Capture packets received, transmitted and dropped by interfaces\n\
         Defaults: at most 1000 packets, 512 bytes of each, of all interfaces. `off' ends\n\
         it and writes the file to /tmp, named by `file' or rx.pcap, rxtx.pcap and so on.\n\
         `error' takes only packets dropped for that reason, by its name or text; `filter' only\n\
         packets that match `classify filter pcap', or that of the interface. Memory is always allocated before and freed\n\
         after (`preallocate-data', `free-data')."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut plan, mut filtered) = (Plan::default(), false);
        let failed = |error: crate::PcapError| CliError::failed(error);
        // `pcap trace rx tx off' is VPP's form of it.
        let is_end = |w: &str| ["rx", "tx", "drop"].contains(&w);
        let words =
            (0..args.len()).map_while(|n| args.peek_at(n)).take_while(|w| is_end(w)).count();
        if args.peek_at(words).is_some_and(|w| w.len() > 1 && "off".starts_with(w)) {
            for _ in 0..words {
                args.word("direction")?;
            }
            args.keyword("off");
            args.end()?;
            let ended = stop(c).map_err(failed)?;
            return in_background(
                move || ended.write(),
                move |_, written, out: &mut Output| {
                    let (path, packets) = written.map_err(failed)?;
                    out.json(json!({ "file": path.display().to_string(), "packets": packets }));
                    out.line(format_args!("{packets} packets written to {}", path.display()));
                    Ok(None)
                },
            );
        }
        if args.keyword("status") {
            args.end()?;
            show(c, out);
            return Ok(Outcome::Done);
        }
        loop {
            match args.choice("what to capture", &WORDS[..11])? {
                "rx" => plan.what[0] = true,
                "tx" => plan.what[1] = true,
                "drop" => plan.what[2] = true,
                "max" => plan.packets = args.number("packets", 1, MAX_PACKETS.into())? as u32,
                "max-bytes-per-pkt" => {
                    let (low, high) = (BYTES.0.into(), BYTES.1.into());
                    plan.bytes = args.number("bytes", low, high)? as u32;
                }
                "intfc" if args.exact("any") => plan.sw_if = None,
                "intfc" => plan.sw_if = Some(interface_arg(c, args)?),
                "error" => plan.error = Some(reason(c, args.word("reason")?).map_err(failed)?),
                "filter" => filtered = true,
                "file" => plan.file = args.word("file")?.to_owned(),
                // The other words name the default.
                _ => {}
            }
            if args.is_empty() {
                break;
            }
        }
        if filtered {
            let user = plan.sw_if.map_or(User::Pcap, User::PcapOf);
            plan.filter = Some(classify::filter(c, user)?);
        }
        let path = plan.path().display().to_string();
        start(c, plan).map_err(failed)?;
        out.json(json!({ "file": path }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [.., "intfc"] => interface_names(c),
            [.., "max" | "max-bytes-per-pkt" | "file"] => Vec::new(),
            _ => WORDS.map(String::from).into(),
        }
    }
}

fn show(c: &Control, out: &mut Output) {
    let Some((plan, of, taken)) = status(c) else {
        out.json(json!({ "capturing": false }));
        return out.line("no capture is running");
    };
    let path = plan.path().display().to_string();
    out.line(format_args!(
        "capturing {} of {of} for {path}: {taken} of {} packets",
        plan.words().join(", "),
        plan.packets
    ));
    out.json(json!({ "capturing": true, "packets": taken, "max": plan.packets, "file": path }));
}
