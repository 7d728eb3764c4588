//! Rates of samples at which loss begins, and who bears it: by worker and by interface.

use thalweg_bench_common::{Cell, Column, Spread, Table};
use thalweg_bench_pg::collector::Collector;
use thalweg_bench_pg::paths::{PORTS, stream};
use thalweg_bench_pg::turns::Plan;
use thalweg_bench_pg::{Router, Samples, cores};
use thalweg_graph::clock;

/// One packet in N, at rising rates.
const RATES: [u32; 9] = [1000, 300, 100, 60, 50, 40, 30, 20, 10];

/// Workers and streams of a setup.
struct Setup {
    name: &'static str,
    workers: usize,
    /// The generator's streams: port and worker.
    streams: &'static [(&'static str, usize)],
    /// A collector reads what comes: it shares the agent's processor.
    read: bool,
}

const ONE: &[(&str, usize)] = &[("pg0", 0)];

const SETUPS: [Setup; 4] = [
    Setup { name: "one worker, one interface", workers: 1, streams: ONE, read: false },
    Setup { name: "the same, with a collector that reads", workers: 1, streams: ONE, read: true },
    Setup {
        name: "one worker, two interfaces",
        workers: 1,
        streams: &[("pg0", 0), ("pg2", 0)],
        read: false,
    },
    Setup {
        name: "two workers, one interface each",
        workers: 2,
        streams: &[("pg0", 0), ("pg2", 1)],
        read: false,
    },
];

/// Fates of a window's samples, by stream.
struct Window {
    seconds: f64,
    each: Vec<Samples>,
    sent: u64,
    /// Samples that were read, and datagrams that were and that had not come.
    read: Option<(u64, u64, u64)>,
}

impl Window {
    /// Datagrams that did not come, in percent.
    fn missing(&self) -> Option<f64> {
        self.read.map(|(_, came, missing)| 100.0 * missing as f64 / (came + missing).max(1) as f64)
    }

    fn all(&self) -> Samples {
        self.each.iter().fold(Samples { sent: self.sent, ..Samples::default() }, |all, s| Samples {
            taken: all.taken + s.taken,
            lost: all.lost + s.lost,
            ..all
        })
    }

    /// Million samples per second, lost ones included.
    fn rate(&self) -> f64 {
        let all = self.all();
        (all.taken + all.lost) as f64 / self.seconds / 1e6
    }

    /// Loss of a stream in relation to its part of the whole: 1 is fair.
    fn burden(&self, stream: usize) -> f64 {
        let share = |s: &Samples| s.lost as f64 / (s.taken + s.lost).max(1) as f64;
        share(&self.each[stream]) / share(&self.all()).max(f64::MIN_POSITIVE)
    }
}

fn start(setup: &Setup) -> Router {
    let on: Vec<_> = match setup.workers {
        1 => vec![Some(cores() - 1)],
        n => (0..n).map(Some).collect(),
    };
    let mut r = Router::start(&on);
    r.cli(PORTS);
    r.cli("create packet-generator interface pg2\ncreate packet-generator interface pg3");
    r.cli("set interface state pg2 up\nset interface state pg3 up");
    for (from, to) in [("pg0", "pg1"), ("pg2", "pg3")] {
        r.cli(&format!("set interface l2 xconnect {from} {to}"));
    }
    for (port, worker) in setup.streams {
        r.cli(&stream(port, port, *worker, "48.0.0.1"));
        r.cli(&format!("sflow enable-disable {port}\npacket-generator enable-stream {port}"));
    }
    r
}

fn look(r: &Router, setup: &Setup) -> (Vec<Samples>, u64, u64) {
    let by_port = r.samples_by_port();
    let of =
        |port: &str| by_port.iter().find(|(n, _)| n == port).map_or_else(Samples::default, |p| p.1);
    (setup.streams.iter().map(|s| of(s.0)).collect(), r.samples().sent, clock::ticks())
}

fn run(setup: &Setup, plan: Plan) -> Vec<Vec<Window>> {
    let mut r = start(setup);
    let (reader, _socket) = match setup.read {
        true => (Some(r.collect_and_count()), None),
        false => (None, Some(r.collect())),
    };
    let read = || reader.as_ref().map(Collector::counts);
    let mut all: Vec<Vec<Window>> = RATES.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.rounds {
        eprintln!("{}: round {} of {}", setup.name, round + 1, plan.rounds);
        for (rate, windows) in RATES.iter().zip(&mut all) {
            r.cli(&format!("sflow sampling-rate {rate}"));
            r.wait(plan.warm_up);
            let (came, (before, sent, start)) = (read(), look(&r, setup));
            r.wait(plan.window);
            let (came_after, (after, sent_after, end)) = (read(), look(&r, setup));
            let since = |((s, d, m), (s0, d0, m0)): (_, _)| (s - s0, d - d0, m - m0);
            let each = after.iter().zip(&before).map(|(a, b)| Samples {
                taken: a.taken - b.taken,
                lost: a.lost - b.lost,
                sent: 0,
            });
            windows.push(Window {
                seconds: (end - start) as f64 / clock::hz(),
                each: each.collect(),
                sent: sent_after - sent,
                read: came_after.zip(came).map(since),
            });
        }
    }
    for (port, _) in setup.streams {
        r.cli(&format!("sflow enable-disable {port} disable"));
    }
    r.stop();
    all
}

fn over(windows: &[Window], f: impl Fn(&Window) -> f64) -> Spread {
    Spread::of(&windows.iter().map(f).collect::<Vec<_>>())
}

/// Measures.
pub fn tables(plan: Plan) -> Vec<Table> {
    let mut table = Table::new(
        "Where loss of samples begins",
        vec![
            Column::text("who samples"),
            Column::text("sFlow"),
            Column::values("samples", "million/s"),
            Column::values("sent", "million/s"),
            Column::values("lost", "%"),
            Column::values("read", "million/s"),
            Column::values("datagrams that did not come", "%"),
            Column::values("first's burden", "× fair"),
            Column::values("second's burden", "× fair"),
        ],
    );
    let mut begins = Vec::new();
    for setup in SETUPS.iter().filter(|s| s.workers <= cores()) {
        let all = run(setup, plan);
        let lost = |w: &Window| w.all().lost as f64 / (w.all().taken + w.all().lost).max(1) as f64;
        let rates = || {
            all.iter().map(|windows| (over(windows, lost).most, over(windows, Window::rate).median))
        };
        let without =
            rates().take_while(|(lost, _)| *lost == 0.0).map(|r| r.1).last().unwrap_or(0.0);
        let with = rates()
            .find(|(lost, _)| *lost > 0.0)
            .map_or_else(|| "–".into(), |r| format!("{:.1}", r.1));
        begins.push(format!(
            "{}: none lost in any round up to {without:.1} million a second, some at {with}",
            setup.name
        ));
        for (rate, windows) in RATES.iter().zip(&all) {
            let burden = |stream: usize| match windows.iter().all(|w| w.all().lost > 0) {
                true if stream < setup.streams.len() && setup.streams.len() > 1 => {
                    Cell::Spread(over(windows, |w| w.burden(stream)), 2)
                }
                _ => Cell::None,
            };
            let of_read = |f: &dyn Fn(&Window) -> Option<f64>| {
                let all: Option<Vec<f64>> = windows.iter().map(f).collect();
                all.map(|all| Spread::of(&all))
            };
            let read = of_read(&|w| w.read.map(|read| read.0 as f64 / w.seconds / 1e6));
            let missing = of_read(&Window::missing);
            table.row(vec![
                setup.name.into(),
                format!("1:{rate}").into(),
                Cell::Spread(over(windows, Window::rate), 2),
                Cell::Spread(over(windows, |w| w.sent as f64 / w.seconds / 1e6), 2),
                Cell::Added(over(windows, |w| 100.0 * lost(w)), 2),
                read.map_or(Cell::None, |s| Cell::Spread(s, 2)),
                missing.map_or(Cell::None, |s| Cell::Added(s, 2)),
                burden(0),
                burden(1),
            ]);
        }
    }
    table.note(format!(
        "{}. Cross connects at full rate; samples go to a UDP socket on this host. The burden is the \
         share of its samples that an interface has lost over the share that all have lost: 1 is fair.",
        begins.join("; ")
    ));
    vec![table]
}
