//! `show trace`: what each node did with the traced packets.

use crate::ask_workers;
use crate::report::error_text;
use crate::traces::Tracing;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::SystemTime;
use thalweg_buffer::SwIfIndex;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::clock;
use thalweg_graph::control::Control;
use thalweg_graph::trace::{MAX_TRACES, PacketTrace, resolve_tokens};
use thalweg_graph::worker::Core;

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

pub(crate) struct Packet {
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
        let most = most(c, max);
        ask_workers(
            c,
            out,
            move |core| core.first_traces(most),
            move |c, traces, out| {
                let threads = collect(c, max, traces)?;
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

/// Returns the workers' traces as text; none for a worker that did not respond.
pub(crate) fn texts(c: &Control, traces: Vec<Option<Vec<PacketTrace>>>) -> Vec<Vec<String>> {
    let in_words = |packet: &PacketTrace| {
        let lines = packet_lines(&in_words(c, packet));
        lines.into_iter().map(|line| line + "\n").collect()
    };
    let shown = |packets: Option<Vec<PacketTrace>>| filtered(c, packets.unwrap_or_default());
    let shown: Vec<_> = traces.into_iter().map(shown).collect();
    shown.iter().map(|packets| packets.iter().map(in_words).collect()).collect()
}

/// Keeps the traces that `trace filter` shows.
fn filtered(c: &Control, mut packets: Vec<PacketTrace>) -> Vec<PacketTrace> {
    if let Some(filter) = Tracing::of(c).filter {
        filter.keep(c, &mut packets);
    }
    packets
}

/// The packets that took one way through the graph.
pub(crate) struct Path {
    /// Nodes in order.
    pub(crate) nodes: Vec<String>,
    pub(crate) packets: Vec<(usize, Packet)>,
    /// Names of the threads, by index.
    names: Vec<String>,
}

impl Path {
    /// A number that differs for other ways.
    pub(crate) fn id(&self) -> u64 {
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let bytes = self.nodes.iter().flat_map(|name| name.bytes().chain([0]));
        bytes.fold(0, |id: u64, byte| {
            (id ^ u64::from(byte)).wrapping_mul(MULTIPLIER).rotate_left(29)
        })
    }

    /// Threads whose packets took it.
    pub(crate) fn threads(&self) -> Vec<usize> {
        let mut threads: Vec<usize> = self.packets.iter().map(|(thread, _)| *thread).collect();
        threads.dedup();
        threads
    }

    pub(crate) fn to_json(&self) -> Value {
        let packet = |(thread, packet): &(usize, Packet)| {
            let mut value = packet_json(packet);
            value["thread"] = json!(thread);
            value
        };
        json!({
            "id": self.id(), "nodes": self.nodes, "count": self.packets.len(),
            "packets": self.packets.iter().map(packet).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn text(&self, number: usize) -> String {
        let dashes = "====================";
        let mut lines = vec![
            format!("{dashes} Path [{number}] {dashes}"),
            format!("Path: {}", self.nodes.join(" -> ")),
            format!("Threads: {:?}  Count: {}", self.threads(), self.packets.len()),
        ];
        let (mut last, mut n) = (usize::MAX, 0);
        for (thread, packet) in &self.packets {
            if *thread != last {
                let name = self.names.get(*thread).map_or("", String::as_str);
                lines.push(format!("\n--- Thread {thread} {name} ---"));
                (last, n) = (*thread, 0);
            }
            n += 1;
            lines.push(format!("Packet {n}\n"));
            lines.extend(packet_lines(packet));
            lines.push(String::new());
        }
        lines.into_iter().map(|l| l + "\n").collect()
    }
}

/// Continues a command with the ways of all traced packets, the most frequent first.
///
/// # Errors
/// That of `then`, or if a worker does not respond.
pub(crate) fn with_paths(
    c: &mut Control,
    out: &mut Output,
    then: impl FnOnce(&[Path], &mut Output) -> Result<(), CliError> + Send + 'static,
) -> Result<Outcome<Control>, CliError> {
    let first = |core: &mut Core| core.first_traces(MAX_TRACES);
    ask_workers(c, out, first, |c, traces, out| {
        let threads = collect(c, MAX_TRACES, traces)?;
        then(&paths(c, threads), out)
    })
}

fn paths(c: &Control, threads: Vec<Thread>) -> Vec<Path> {
    let mut paths: Vec<Path> = Vec::new();
    let mut at: HashMap<Vec<String>, usize> = HashMap::new();
    let names: Vec<String> = c.threads().into_iter().map(|t| t.name).collect();
    for t in threads {
        for packet in t.packets {
            let nodes: Vec<String> = packet.steps.iter().map(|s| s.node.clone()).collect();
            let i = *at.entry(nodes.clone()).or_insert_with(|| {
                paths.push(Path { nodes, packets: Vec::new(), names: names.clone() });
                paths.len() - 1
            });
            paths[i].packets.push((t.index, packet));
        }
    }
    paths.sort_by_key(|path| std::cmp::Reverse(path.packets.len()));
    paths
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

/// Number of packets to ask workers for, to show `max`: what a filter hides does not count.
fn most(c: &Control, max: usize) -> usize {
    if Tracing::of(c).filter.is_some() { MAX_TRACES } else { max }
}

fn collect(c: &Control, max: usize, traces: Vec<Traces>) -> Result<Vec<Thread>, CliError> {
    let hides = Tracing::of(c).filter.is_some();
    let names: Vec<String> = c.threads().into_iter().map(|t| t.name).collect();
    let mut threads = Vec::new();
    for (w, answer) in traces.into_iter().enumerate() {
        let Some((mut count, mut packets)) = answer else {
            return Err(CliError::failed(format!("worker {w} does not respond")));
        };
        if hides {
            packets = filtered(c, packets);
            count = packets.len();
            packets.truncate(max);
        }
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
    let stamp = Tracing::of(c).stamp;
    let step = |s: &thalweg_graph::trace::TraceStep| Step {
        node: c.nodes().get(s.node.0 as usize).map_or("?".into(), |n| n.name.to_string()),
        time: stamp.format(s.at),
        text: resolve_tokens(
            &s.text,
            |i| c.interface_name_at(SwIfIndex(i), s.at),
            |e| error_text(c, e),
        ),
    };
    Packet {
        wall: clock::wall(packet.steps.first().map_or(0, |s| s.at)),
        steps: packet.steps.iter().map(step).collect(),
    }
}

fn packet_json(p: &Packet) -> Value {
    let step = |s: &Step| json!({ "time": s.time, "node": s.node, "text": s.text.trim_end() });
    json!({
        "wall_clock": thalweg_cli::utc(p.wall),
        "steps": p.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

fn to_json(t: &Thread) -> Value {
    json!({
        "thread": t.index, "name": t.name, "packets_traced": t.count,
        "packets": t.packets.iter().map(packet_json).collect::<Vec<_>>(),
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
            lines.push(format!("Packet {} at {} UTC", i + 1, thalweg_cli::utc(p.wall)));
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
