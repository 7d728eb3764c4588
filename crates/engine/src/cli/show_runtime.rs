//! `show runtime`: the cost of each node, per thread.

use crate::report::{self, centre, line};
use serde_json::{Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::clock;
use thalweg_graph::control::Control;
use thalweg_graph::decl::{Kind, NodeId};

/// `show runtime [verbose|max|summary] [<node>]`
pub struct ShowRuntime;

/// The command.
pub static COMMAND: ShowRuntime = ShowRuntime;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plain,
    Verbose,
    Max,
    Summary,
}

/// One thread's counters since the last clear.
#[derive(Clone, Debug, Default)]
struct ThreadRows {
    index: usize,
    name: String,
    lcore: Option<usize>,
    /// Seconds since the last clear.
    time: f64,
    vector_rate: f64,
    loop_rate: f64,
    /// Packets per second: in, out, dropped, punted.
    rates: [f64; 4],
    nodes: Vec<NodeRow>,
}

#[derive(Clone, Debug, Default)]
struct NodeRow {
    name: String,
    state: &'static str,
    calls: u64,
    vectors: u64,
    suspends: u64,
    clocks: u64,
    max_clocks: u64,
    max_vectors: u64,
}

impl NodeRow {
    /// Clocks per packet; per call if no packet passed.
    fn clocks_each(&self) -> f64 {
        match (self.vectors, self.calls, self.suspends) {
            (0, 0, 0) => 0.0,
            (0, 0, n) | (0, n, _) | (n, ..) => self.clocks as f64 / n as f64,
        }
    }

    fn per_call(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.vectors as f64 / self.calls as f64 }
    }
}

impl Command<Control> for ShowRuntime {
    fn path(&self) -> &'static str {
        "show runtime"
    }

    fn usage(&self) -> &'static str {
        "[verbose|max|summary] [<node>]"
    }

    fn help(&self) -> &'static str {
        "Show the cost of each graph node\n\
         Clocks are per packet, or per call if no packet passed. `verbose' includes nodes that\n\
         never ran; `max' shows each node's longest call; `summary' only the rates.\n\
         Counters start at the last `clear runtime'."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let node = |a: &mut Args<'_>| {
            a.with("node", "a node of the graph", |w| c.node(w).map(|_| w.to_owned()))
        };
        let mut only = args.maybe(node);
        let mode = match args.one_of(&["verbose", "max", "summary"])? {
            Some("verbose") => Mode::Verbose,
            Some("max") => Mode::Max,
            Some(_) => Mode::Summary,
            None => Mode::Plain,
        };
        if only.is_none() && !args.is_empty() {
            only = Some(node(args)?);
        }
        args.end()?;
        let mut threads = collect(c);
        for t in &mut threads {
            t.nodes.retain(|n| match &only {
                Some(name) => n.name == *name,
                None => mode == Mode::Verbose || n.calls + n.suspends > 0,
            });
        }
        if out.wants_json() {
            out.json(threads.iter().map(to_json).collect());
        } else {
            out.text(&format(&threads, mode));
        }
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        let mut words: Vec<String> = c.nodes().iter().map(|n| n.name.to_string()).collect();
        if before.is_empty() {
            words.extend(["verbose", "max", "summary"].map(String::from));
        }
        words
    }
}

fn collect(c: &Control) -> Vec<ThreadRows> {
    let since = c.baseline.runtime_since.map_or_else(|| c.uptime(), |at| at.elapsed());
    let time = since.as_secs_f64();
    let threads = c.threads().into_iter().enumerate();
    let rows = threads.map(|(index, info)| {
        let rates = crate::rates(c, index);
        let mut t = ThreadRows {
            index,
            name: info.name,
            lcore: info.core.or_else(|| report::scheduling(info.tid).cpu),
            time,
            vector_rate: rates.vector_rate,
            loop_rate: rates.loops,
            ..ThreadRows::default()
        };
        match index.checked_sub(1) {
            None => t.nodes.push(main_row(c)),
            Some(w) => {
                let now = report::total_counts(c, w);
                let [rx, tx, dropped, delivered, _] = report::since(now, c.baseline.totals.get(w));
                t.rates = [rx, tx, dropped, delivered].map(|n| n as f64 / time.max(1e-9));
                t.nodes = node_rows(c, w);
            }
        }
        t
    });
    rows.collect()
}

/// The main thread runs no node: its loop is shown as one.
fn main_row(c: &Control) -> NodeRow {
    let (now, base) = (c.main_stats(), c.baseline.main);
    NodeRow {
        name: "main-loop".into(),
        state: "active",
        calls: now.loops - base.loops,
        suspends: now.sleeps - base.sleeps,
        clocks: now.busy - base.busy,
        ..NodeRow::default()
    }
}

fn node_rows(c: &Control, w: usize) -> Vec<NodeRow> {
    let sleeps = c.worker_sleeps(w);
    let row = |(i, entry): (usize, &thalweg_graph::control::NodeEntry)| {
        let id = NodeId(i as u16);
        let [calls, vectors, clocks, suspends] = c.node_counts(w, id);
        let stats = c.worker_stats(w).node(id);
        NodeRow {
            name: entry.name.to_string(),
            state: match entry.kind {
                _ if !entry.live => "disabled",
                Kind::Input | Kind::Timer if sleeps => "interrupt wait",
                Kind::Input | Kind::Timer => "polling",
                _ => "active",
            },
            calls,
            vectors,
            suspends,
            clocks,
            max_clocks: stats.max_clocks.get(),
            max_vectors: stats.max_vectors.get(),
        }
    };
    let mut rows: Vec<NodeRow> = c.nodes().iter().enumerate().map(row).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

fn to_json(t: &ThreadRows) -> Value {
    let [input, output, drop, punt] = t.rates;
    let node = |n: &NodeRow| {
        json!({
            "name": n.name, "state": n.state, "calls": n.calls, "vectors": n.vectors,
            "suspends": n.suspends, "clocks": n.clocks, "clocks_per_packet": n.clocks_each(),
            "vectors_per_call": n.per_call(), "max_clocks": n.max_clocks,
            "vectors_at_max": n.max_vectors,
        })
    };
    json!({
        "thread": t.index, "name": t.name, "lcore": t.lcore, "seconds": t.time,
        "vector_rate": t.vector_rate, "loops_per_second": t.loop_rate, "clock_hz": clock::hz(),
        "rates": { "in": input, "out": output, "drop": drop, "punt": punt },
        "nodes": t.nodes.iter().map(node).collect::<Vec<_>>(),
    })
}

fn format(threads: &[ThreadRows], mode: Mode) -> String {
    let mut lines = Vec::new();
    for (i, t) in threads.iter().enumerate() {
        if i > 0 {
            lines.push("---------------".to_owned());
        }
        let lcore = t.lcore.map_or("any".to_owned(), |n| n.to_string());
        lines.push(format!("Thread {} {} (lcore {lcore})", t.index, t.name));
        lines.push(format!(
            "Time {:.1}, 10 sec internal node vector rate {:.2} loops/sec {:.2}",
            t.time, t.vector_rate, t.loop_rate
        ));
        let [input, output, drop, punt] = t.rates;
        lines.push(format!(
            "  vector rates in {input:.4e}, out {output:.4e}, drop {drop:.4e}, punt {punt:.4e}"
        ));
        if mode == Mode::Summary {
            continue;
        }
        lines.push(heading(mode));
        lines.extend(t.nodes.iter().map(|n| row(n, mode)));
    }
    lines.into_iter().map(|l| l + "\n").collect()
}

fn heading(mode: Mode) -> String {
    let columns: &[(&str, usize)] = match mode {
        Mode::Max => &[
            ("Max Node Clocks", 17),
            ("Vectors at Max", 16),
            ("Max Clocks", 16),
            ("Avg Clocks", 16),
            ("Avg Vectors/Call", 18),
        ],
        _ => &[
            ("State", 12),
            ("Calls", 16),
            ("Vectors", 16),
            ("Suspends", 16),
            ("Clocks", 16),
            ("Vectors/Call", 16),
        ],
    };
    line([("Name", 30)].iter().chain(columns).map(|(text, width)| centre(text, *width)))
}

fn row(n: &NodeRow, mode: Mode) -> String {
    // A long state takes space from the name's column, which keeps a trailing blank.
    let state = centre(n.state, 12);
    let width = match mode {
        Mode::Max => 29,
        _ => 41 - state.len(),
    };
    let name = format!("{:<width$} ", n.name);
    let cells = match mode {
        Mode::Max => {
            let each = n.max_clocks as f64 / n.max_vectors.max(1) as f64;
            format!(
                "{:>17}{:>16}{each:>16.2e}{:>16.2e}{:>18.2}",
                n.max_clocks,
                n.max_vectors,
                n.clocks_each(),
                n.per_call()
            )
        }
        _ => format!(
            "{}{:>16}{:>16}{:>16}{:>16.2e}{:>16.2}",
            state,
            n.calls,
            n.vectors,
            n.suspends,
            n.clocks_each(),
            n.per_call()
        ),
    };
    name + &cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads() -> Vec<ThreadRows> {
        let main = ThreadRows {
            name: "main".into(),
            lcore: Some(0),
            time: 12.34,
            loop_rate: 2.5,
            nodes: vec![NodeRow {
                name: "main-loop".into(),
                state: "active",
                calls: 31,
                suspends: 30,
                clocks: 62_000,
                ..NodeRow::default()
            }],
            ..ThreadRows::default()
        };
        let worker = ThreadRows {
            index: 1,
            name: "thalweg_wk_0".into(),
            lcore: Some(3),
            time: 12.34,
            vector_rate: 255.5,
            loop_rate: 123_456.78,
            rates: [33_466_000.0, 33_465_000.0, 1200.0, 0.0],
            nodes: vec![
                NodeRow {
                    name: "af-packet-input".into(),
                    state: "interrupt wait",
                    calls: 100,
                    suspends: 2,
                    clocks: 160_000,
                    ..NodeRow::default()
                },
                NodeRow {
                    name: "ethernet-input".into(),
                    state: "active",
                    calls: 1000,
                    vectors: 256_000,
                    clocks: 5_120_000,
                    max_clocks: 9000,
                    max_vectors: 256,
                    ..NodeRow::default()
                },
            ],
        };
        vec![main, worker]
    }

    #[test]
    fn text_stands_as_vpp_prints_it() {
        thalweg_testkit::golden!("tests/golden/runtime.txt", format(&threads(), Mode::Plain));
        thalweg_testkit::golden!("tests/golden/runtime_max.txt", format(&threads(), Mode::Max));
        let summary = format(&threads(), Mode::Summary);
        assert_eq!(summary.lines().count(), 7, "{summary}");
    }

    #[test]
    fn clocks_are_per_packet_else_per_call_else_per_sleep() {
        let row = |vectors, calls, suspends| NodeRow {
            vectors,
            calls,
            suspends,
            clocks: 1200,
            ..NodeRow::default()
        };
        assert_eq!(row(100, 10, 1).clocks_each(), 12.0);
        assert_eq!(row(0, 10, 1).clocks_each(), 120.0);
        assert_eq!(row(0, 0, 2).clocks_each(), 600.0);
        assert_eq!(row(0, 0, 0).clocks_each(), 0.0);
    }
}
