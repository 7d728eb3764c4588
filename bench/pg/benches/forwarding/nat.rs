//! Cost that translation adds to IPv4: standing sessions, few and many, in order and at random; and
//! new sessions.

use std::time::{Duration, Instant};

use thalweg_bench_common::{Cell, Column, Series, Table};
use thalweg_bench_pg::paths::{nat, stream_of};
use thalweg_bench_pg::scaling::{Scaling, of_turns, of_workers};
use thalweg_bench_pg::turns::{Plan, Turns, in_turn};
use thalweg_bench_pg::{Router, cores};
use thalweg_graph::clock;
use thalweg_tables::hash::mix64;

fn set_up(workers: &[Option<usize>], sessions: u32) -> Router {
    let mut r = Router::start(workers);
    nat::set_up(&mut r, sessions);
    r
}

/// Turns translation on or off; sessions stay.
fn translate(r: &mut Router, was: &mut bool, on: bool) {
    if *was != on {
        let end = if on { "" } else { " del" };
        r.cli(&format!("set interface nat44 in pg0 out pg1{end}"));
    }
    *was = on;
}

/// IPv4 alone and with translation, the same packets.
fn standing(plan: Plan, sessions: u32, random: bool) -> [Turns; 2] {
    let title = format!("{sessions} sessions");
    let mut r = set_up(&[Some(cores() - 1)], sessions + sessions / 8 + 1024);
    let packets = sessions.max(1 << 10);
    let nth = move |n: u32| {
        if random { (mix64(u64::from(n)) % u64::from(sessions)) as u32 } else { n % sessions }
    };
    let all = (0..sessions).map(nat::packet);
    stream_of(&mut r, "all", 0, all);
    stream_of(&mut r, "s0", 0, (0..packets).map(|n| nat::packet(nth(n))));
    let mut on = false;
    translate(&mut r, &mut on, true);
    // All of them once, in order, so that each has a session before it is measured. Some may be
    // given up for others while the table's memory comes into being: these get another packet.
    let end = Instant::now() + PATIENCE;
    loop {
        r.cli(&format!(
            "packet-generator disable-stream all\npacket-generator configure all limit {sessions}\n\
             packet-generator enable-stream all"
        ));
        r.wait(plan.warm_up * 8);
        if has(&mut r, sessions) {
            break;
        }
        assert!(Instant::now() < end, "not {sessions} sessions: {}", state(&mut r));
    }
    r.cli("packet-generator disable-stream all\npacket-generator enable-stream s0");
    r.wait(plan.warm_up * 4);
    let turns = in_turn(plan, &title, &mut r, &[false, true], |r, nat| translate(r, &mut on, *nat));
    r.stop();
    let mut turns = turns.into_iter();
    std::array::from_fn(|_| turns.next().unwrap_or_default())
}

fn sessions(plan: Plan) -> Table {
    let mut table = Table::new(
        "NAT44",
        vec![
            Column::text("sessions"),
            Column::text("order"),
            Column::values("rate", "Mpps"),
            Column::values("IPv4 alone", "clocks/packet"),
            Column::values("with NAT44", "clocks/packet"),
            Column::values("of it, the translator", "clocks/packet"),
            Column::values("ratio", ""),
        ],
    );
    let cases = [(1, false), (16_384, false), (16_384, true), (1 << 20, false), (1 << 20, true)];
    for (n, random) in cases {
        let [alone, nat] = standing(plan, n, random);
        let order = if random { "random" } else { "sequential" };
        let mut node = Series::default();
        nat.windows.iter().for_each(|w| node.push(w.clocks_of("nat44-ed-in2out")));
        table.row(vec![
            n.to_string().into(),
            order.into(),
            Cell::series(&nat.mpps, 1),
            Cell::series(&alone.clocks, 1),
            Cell::series(&nat.clocks, 1),
            Cell::series(&node, 1),
            Cell::ratio(nat.clocks.over(&alone.clocks)),
        ]);
    }
    table.note(
        "UDP with checksums, from the inside to the outside; clocks without the generator's input. \
         64 addresses, a port of which each session has for itself.",
    );
    table
}

/// Sessions that begin, a million of them, one packet each.
fn beginning(plan: Plan) -> Table {
    const ALL: u32 = 1 << 20;
    let mut table = Table::new(
        "New NAT44 sessions",
        vec![
            Column::values("per second, one worker", "million"),
            Column::values("whole loop", "clocks/session"),
            Column::values("the translator", "clocks/session"),
        ],
    );
    let mut r = set_up(&[Some(cores() - 1)], ALL + 1024);
    stream_of(&mut r, "s0", 0, (0..ALL).map(nat::packet));
    r.cli("set interface nat44 in pg0 out pg1");
    let (mut rate, mut whole, mut node) = (Series::default(), Series::default(), Series::default());
    // The first round creates the memory of all sessions.
    for round in 0..=plan.rounds {
        eprintln!("new sessions: round {round} of {}", plan.rounds);
        r.cli(&format!("packet-generator configure s0 limit {ALL}"));
        r.command("packet-generator enable-stream s0");
        let w = r.measure(plan.window * 8);
        if round > 0 {
            rate.push(clock::hz() / w.loop_clocks / 1e6);
            whole.push(w.loop_clocks);
            node.push(w.clocks_of("nat44-ed-in2out"));
        }
        r.cli("packet-generator disable-stream\nclear nat44 sessions");
        until(&mut r, plan, 0);
    }
    r.stop();
    table.row(vec![Cell::series(&rate, 2), Cell::series(&whole, 0), Cell::series(&node, 0)]);
    table.note(
        "A million sessions of one packet each, in a table with room for them, from memory that is \
         there; the loop has the generator's input in it.",
    );
    table
}

/// Two workers, of which each has a stream of its own.
#[derive(Clone, Copy)]
struct Pair {
    /// Sessions of both together.
    sessions: u32,
    random: bool,
    /// Hosts are of the worker that receives from them.
    apart: bool,
}

impl Pair {
    /// The flows of a worker's stream, in the order of their numbers.
    fn flows(self, worker: usize) -> Vec<u32> {
        nat::flows(worker, self.apart).take(self.sessions as usize / 2).collect()
    }

    fn set_up(self) -> Router {
        // Each worker has room for this number.
        let mut r = set_up(&[Some(0), Some(1)], self.sessions / 2 + self.sessions / 8 + 4096);
        for worker in 0..2 {
            let mut flows = self.flows(worker);
            let stream = |r: &mut Router, name: &str, flows: &[u32]| {
                let packets = flows.iter().map(|n| nat::packet(*n));
                stream_of(r, &format!("{name}{worker}"), worker, packets);
            };
            stream(&mut r, "all", &flows);
            if self.random {
                flows.sort_by_key(|n| mix64(u64::from(*n)));
            }
            // A frame's packets are of the generator's list at any number of sessions.
            flows = flows.repeat(1024_usize.div_ceil(flows.len()));
            stream(&mut r, "s", &flows);
        }
        r.cli("set interface nat44 in pg0 out pg1");
        r
    }

    /// A session for each flow, in the order of their numbers, so that only packets are at random.
    fn open(self, r: &mut Router, plan: Plan) {
        for worker in 0..2 {
            let flows = self.sessions / 2;
            // Slow enough that memory is found for them meanwhile, on processors that are busy.
            r.cli(&format!("packet-generator configure all{worker} limit {flows} rate 1e6"));
            r.cli(&format!("packet-generator enable-stream all{worker}"));
        }
        until(r, plan, self.sessions);
        r.cli("packet-generator disable-stream");
    }

    fn standing(self, plan: Plan, title: &str) -> Scaling {
        of_workers(plan, title, self.apart, || {
            let mut r = self.set_up();
            if self.apart {
                self.open(&mut r, plan);
            }
            r
        })
    }

    /// Sessions that begin: as packets, since each has one.
    fn beginning(self, plan: Plan, title: &str) -> Scaling {
        let (flows, mut before) = (u64::from(self.sessions / 2), [0; 2]);
        // The longer a turn, the more sessions it would need.
        let window = plan.window.min(Duration::from_millis(200));
        let plan = Plan { window, ..plan };
        let start = || {
            let mut r = self.set_up();
            // Touch the memory of all sessions first.
            self.open(&mut r, plan);
            r
        };
        of_turns(plan, title, true, start, |r| {
            for (worker, before) in before.iter_mut().enumerate() {
                let came = r.control().worker_stats(worker).totals.rx.get();
                // A router that has just begun has had each flow once; another may have been before
                // it.
                let new = came.checked_sub(*before).filter(|_| *before > 0);
                assert!(new.is_none_or(|new| new < flows), "{flows} flows are too few for a turn");
                *before = came;
            }
            r.cli("clear nat44 sessions");
            until(r, plan, 0);
            for worker in 0..2 {
                r.cli(&format!("packet-generator configure s{worker} limit {flows}"));
            }
        })
    }
}

/// The longest that anything waits for sessions.
const PATIENCE: Duration = Duration::from_secs(30);

/// True if there are this many sessions.
fn has(r: &mut Router, sessions: u32) -> bool {
    r.cli("show nat44 summary").contains(&format!("total sessions: {sessions}\n"))
}

/// Clues to why sessions are missing.
fn state(r: &mut Router) -> String {
    ["show nat44 summary", "show errors"].map(|c| r.cli(c)).concat()
}

/// Waits until there are this many sessions.
fn until(r: &mut Router, plan: Plan, sessions: u32) {
    let end = Instant::now() + PATIENCE;
    while !has(r, sessions) {
        assert!(Instant::now() < end, "not {sessions} sessions: {}", state(r));
        r.wait(plan.warm_up);
    }
}

/// One worker and two, each with hosts of its own, and with hosts of either.
fn workers(plan: Plan) -> Table {
    let mut columns = ["hosts", "sessions", "order"].map(Column::text).to_vec();
    columns.extend(Scaling::columns("Mpps"));
    let mut table = Table::new("NAT44 workers", columns);
    if cores() < 2 {
        table.row(vec!["all".into(), Cell::Missing("there is one processor only".into())]);
        return table;
    }
    let mut row = |pair: Pair, new: bool| {
        let Pair { sessions, random, apart } = pair;
        let hosts = if apart { "of the worker that receives" } else { "of either worker" };
        let order = if random { "random" } else { "sequential" };
        let sessions = if new { "new ones".into() } else { sessions.to_string() };
        let title = format!("NAT44 workers, {sessions}, {order}");
        let scaling = if new { pair.beginning(plan, &title) } else { pair.standing(plan, &title) };
        let texts = [hosts.into(), sessions.into(), order.into()];
        table.row(texts.into_iter().chain(scaling.cells(1)).collect());
    };
    let (few, some, many) = (2, 16_384, 1 << 20);
    let standing = [(few, false), (some, false), (some, true), (many, false), (many, true)];
    for (sessions, random) in standing {
        row(Pair { sessions, random, apart: true }, false);
    }
    row(Pair { sessions: 2 * many, random: false, apart: true }, true);
    row(Pair { sessions: some, random: false, apart: false }, false);
    table.note(
        "Half of the sessions are of either stream. One is the mean of either stream alone. Hosts of the worker \
         that receives: a device that spreads by source address. Hosts of either: half of the packets \
         are handed over. New ones: sessions of one packet each, in a table with room for them, from memory that \
         is there. Turns and the last column as of other workers.",
    );
    table
}

/// Measures.
pub fn tables(plan: Plan) -> Vec<Table> {
    vec![sessions(plan), beginning(plan), workers(plan)]
}
