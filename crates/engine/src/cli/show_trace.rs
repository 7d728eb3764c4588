//! `show trace`: what each node did with the traced packets.

use crate::ask_workers;
use crate::report::error_text;
use serde_json::{Value, json};
use std::time::SystemTime;
use thalweg_buffer::SwIfIndex;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::clock;
use thalweg_graph::control::Control;
use thalweg_graph::trace::{MAX_TRACES, PacketTrace, resolve_tokens};

/// `show trace [max <count>]`
pub struct ShowTrace;

/// The command.
pub static COMMAND: ShowTrace = ShowTrace;

/// Number of packets shown per thread unless `max` is given.
const SHOWN: usize = 50;

/// One step of a trace, as text.
struct Step {
    node: String,
    /// Time since start.
    time: String,
    text: String,
}

struct Packet {
    wall: SystemTime,
    steps: Vec<Step>,
}

struct Thread {
    index: usize,
    name: String,
    /// Number of traced packets, shown or not.
    count: usize,
    packets: Vec<Packet>,
}

impl Command<Control> for ShowTrace {
    fn path(&self) -> &'static str {
        "show trace"
    }

    fn usage(&self) -> &'static str {
        "[max <count>]"
    }

    fn help(&self) -> &'static str {
        "Show the path of the traced packets through the graph\n\
         Up to 50 packets per thread unless `max' is given. `trace add' starts tracing."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let max = match args.keyword("max") {
            true => args.number("count", 1, MAX_TRACES as u64)? as usize,
            false => SHOWN,
        };
        args.end()?;
        ask_workers(
            c,
            out,
            move |core| core.first_traces(max),
            move |c, traces, out| {
                let threads = collect(c, traces)?;
                if out.wants_json() {
                    out.json(threads.iter().map(to_json).collect());
                } else {
                    out.text(&format(&threads, max));
                }
                Ok(())
            },
        )
    }
}

/// Returns all traces as text, by worker; none for a worker that does not respond.
pub(crate) fn texts(c: &mut Control) -> Vec<Vec<String>> {
    let traces = c.ask(|core| core.traces());
    let in_words = |packet: &PacketTrace| {
        let lines = packet_lines(&in_words(c, packet));
        lines.into_iter().map(|line| line + "\n").collect()
    };
    traces.into_iter().map(|packets| packets.iter().flatten().map(in_words).collect()).collect()
}

fn packet_lines(p: &Packet) -> Vec<String> {
    let mut lines = Vec::new();
    for s in &p.steps {
        lines.push(format!("{}: {}", s.time, s.node));
        lines.extend(s.text.lines().map(|l| format!("  {l}").trim_end().to_owned()));
    }
    lines
}

/// Traces of a worker: the number of all, and the first of them.
type Traces = Option<(usize, Vec<PacketTrace>)>;

fn collect(c: &Control, traces: Vec<Traces>) -> Result<Vec<Thread>, CliError> {
    let names: Vec<String> = c.threads().into_iter().map(|t| t.name).collect();
    let mut threads = Vec::new();
    for (w, answer) in traces.into_iter().enumerate() {
        let Some((count, packets)) = answer else {
            return Err(CliError::failed(format!("worker {w} does not respond")));
        };
        threads.push(Thread {
            index: w + 1,
            name: names.get(w + 1).cloned().unwrap_or_default(),
            count,
            packets: packets.iter().map(|p| in_words(c, p)).collect(),
        });
    }
    Ok(threads)
}

fn in_words(c: &Control, packet: &PacketTrace) -> Packet {
    let step = |s: &thalweg_graph::trace::TraceStep| Step {
        node: c.nodes().get(s.node.0 as usize).map_or("?".into(), |n| n.name.to_string()),
        time: clock::format_since_start(s.at),
        text: resolve_tokens(&s.text, |i| c.interface_name(SwIfIndex(i)), |e| error_text(c, e)),
    };
    Packet {
        wall: clock::wall(packet.steps.first().map_or(0, |s| s.at)),
        steps: packet.steps.iter().map(step).collect(),
    }
}

fn to_json(t: &Thread) -> Value {
    let step = |s: &Step| json!({ "time": s.time, "node": s.node, "text": s.text.trim_end() });
    let packet = |p: &Packet| {
        json!({
            "wall_clock": clock::format_wall(p.wall),
            "steps": p.steps.iter().map(step).collect::<Vec<_>>(),
        })
    };
    json!({
        "thread": t.index, "name": t.name, "packets_traced": t.count,
        "packets": t.packets.iter().map(packet).collect::<Vec<_>>(),
    })
}

fn format(threads: &[Thread], max: usize) -> String {
    let mut lines = Vec::new();
    for t in threads {
        let dashes = "-------------------";
        lines.push(format!("{dashes} Start of thread {} {} {dashes}", t.index, t.name));
        if t.packets.is_empty() {
            lines.push("No packets in trace buffer".into());
        }
        for (i, p) in t.packets.iter().enumerate() {
            lines.push(format!("Packet {} at {} UTC", i + 1, clock::format_wall(p.wall)));
            lines.push(String::new());
            lines.extend(packet_lines(p));
            lines.push(String::new());
        }
        if t.count > t.packets.len() {
            lines.push(format!(
                "Limiting display to {max} packets of {}. To display more specify max.",
                t.count
            ));
        }
    }
    lines.into_iter().map(|l| l + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn text_stands_as_vpp_prints_it() {
        let step = |node: &str, us: u32, text: &str| Step {
            node: node.into(),
            time: format!("00:00:12:{us:06}"),
            text: text.into(),
        };
        let packet = |steps| Packet {
            wall: SystemTime::UNIX_EPOCH + Duration::from_micros(1_795_230_921_123_456),
            steps,
        };
        let threads = [
            Thread {
                index: 1,
                name: "thalweg_wk_0".into(),
                count: 3,
                packets: vec![
                    packet(vec![
                        step("pg-input", 345_678, "stream a, 60 bytes\n\n  indented"),
                        step("ethernet-input", 345_700, "IP4: 02:00 -> 02:01\n"),
                    ]),
                    packet(vec![step("pg-input", 345_900, "")]),
                ],
            },
            Thread { index: 2, name: "thalweg_wk_1".into(), count: 0, packets: vec![] },
        ];
        thalweg_testkit::golden!("tests/golden/trace.txt", format(&threads, 2));
    }
}
