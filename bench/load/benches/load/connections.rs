//! Connections without a device between: how many a second, and ten million held.
//!
//! Clients and servers hand each other their frames. Time is counted, not taken from a clock: a
//! turn is some microseconds, however long it takes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::param::page_size;
use thalweg_bench_common::{Cell, Column, Series, Table, pauses};
use thalweg_load::Sink;
use thalweg_load::talk::{Clients, Exchange, Opening, Plan, Protocol, Servers, Step, Talk};

use crate::{PROCESSOR, own};

/// Connections that are held.
const HELD: u32 = 10_000_000;
/// Room for one frame in bytes.
const BUFFER: usize = 128;
/// Frames of one direction in a turn.
const BUFFERS: usize = 1 << 13;
/// The longest that a loop may take.
const LIMIT: Duration = Duration::from_millis(1);

/// Frames on their way in one direction, in buffers that are used in turn.
struct Way {
    memory: Vec<u8>,
    lengths: Vec<usize>,
}

impl Way {
    fn new() -> Way {
        Way { memory: vec![0; BUFFERS * BUFFER], lengths: Vec::with_capacity(BUFFERS) }
    }

    fn get(&self, number: usize) -> Option<&[u8]> {
        let length = self.lengths.get(number)?;
        self.memory.get(number * BUFFER..)?.get(..*length)
    }
}

impl Sink for Way {
    #[inline]
    fn frame(&mut self, length: usize) -> Option<&mut [u8]> {
        let at = self.lengths.len() * BUFFER;
        let frame = self.memory.get_mut(at..at + BUFFER)?.get_mut(..length)?;
        self.lengths.push(length);
        Some(frame)
    }
}

struct World {
    clients: Clients,
    servers: Servers,
    ways: [Way; 2],
    /// Time in microseconds.
    now: u64,
    turn: u64,
}

impl World {
    /// `turn`: microseconds that pass in a turn.
    fn new(plan: &Plan, opening: Opening, turn: u64) -> Result<World> {
        let mut clients = Clients::new(plan, 1, 0)?;
        let servers = Servers::new(plan, 1, 0)?;
        clients.set_opening(opening, 0);
        Ok(World { clients, servers, ways: [Way::new(), Way::new()], now: 0, turn })
    }

    /// Does what a turn asks for: at most `most` timers and opened connections on each side, and
    /// all that follows.
    fn turn(&mut self, most: usize) {
        self.now += self.turn;
        let [there, back] = &mut self.ways;
        there.lengths.clear();
        back.lengths.clear();
        self.servers.poll(self.now, most, back);
        self.clients.poll(self.now, most, there);
        let (mut heard, mut answered) = (0, 0);
        while heard < there.lengths.len() || answered < back.lengths.len() {
            while let Some(frame) = there.get(heard) {
                self.servers.receive(self.now, frame, back);
                heard += 1;
            }
            while let Some(frame) = back.get(answered) {
                self.clients.receive(self.now, frame, there);
                answered += 1;
            }
        }
    }
}

/// Short connections a second, once TIME_WAIT is full.
pub fn rate(rounds: usize) -> Result<Table> {
    const BATCH: u32 = 32;
    let mut plan = Plan::of(Talk::exchange("t", Protocol::Tcp, 8080, &Exchange::default()));
    plan.room = 1 << 20;
    let opening = Opening { rate: 50_000.0 * f64::from(BATCH), hold: None, total: None };
    let mut world = World::new(&plan, opening, 20)?;
    while world.clients.counts().completed < 1_000_000 {
        world.turn(4 * BATCH as usize);
    }
    let mut rate = Series::default();
    for _ in 0..rounds {
        let (begin, before) = (own(), world.clients.counts().completed);
        while own() - begin < 1.0 {
            (0..100).for_each(|_| world.turn(4 * BATCH as usize));
        }
        let done = world.clients.counts().completed - before;
        rate.push(done as f64 / (own() - begin) / 1e6);
    }
    let counts = world.clients.counts();
    ensure!((counts.clean, counts.no_tuple) == (counts.completed, 0), "{counts:?}");
    let columns = vec![Column::text("what"), Column::values("rate", "M/s")];
    let mut table = Table::new("Load tester: connections a second", columns);
    table.row(vec!["short TCP connections, 7 packets".into(), Cell::series(&rate, 2)]);
    table.note("Opened, a request of 20 bytes answered, closed, and kept in TIME_WAIT for 0.5 s; a second of the thread's own.");
    Ok(table)
}

/// A connection that is asked twice, and stays open for as long before, between and after as `wait`
/// says.
fn patient(wait: u64) -> Talk {
    let wait = Step::Wait { least: wait, most: wait };
    let mut talk = Talk::exchange("held", Protocol::Tcp, 8080, &Exchange::default());
    talk.client = vec![Step::Send { bytes: 20 }, Step::Expect { count: 20 }, wait];
    talk.client.push(Step::Repeat { from: 0, times: 2 });
    talk.server = vec![Step::Expect { count: 20 }, Step::Send { bytes: 20 }];
    talk.server.extend([Step::Repeat { from: 0, times: 2 }, Step::AwaitClose]);
    talk
}

/// Turns of a part of the time.
#[derive(Default)]
struct Part {
    took: f64,
    longest: f64,
    turns: u64,
    long: u64,
}

impl Part {
    /// Runs turns until `end` returns true.
    fn run(world: &mut World, end: impl Fn(&World) -> bool) -> Part {
        let mut part = Part::default();
        while !end(world) {
            let from = own();
            world.turn(256);
            let took = own() - from;
            part.took += took;
            part.turns += 1;
            part.longest = part.longest.max(took);
            part.long += u64::from(took > LIMIT.as_secs_f64());
        }
        part
    }
}

/// Memory of the process in bytes.
fn resident() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split(' ').nth(1).and_then(|word| word.parse::<f64>().ok());
    Ok(pages.context("/proc/self/statm has no second number")? * page_size() as f64)
}

/// Opens ten million connections, has each asked while all are open, and closes them.
pub fn held() -> Result<Table> {
    const WAIT: u64 = 12_000_000;
    let before = resident()?;
    let mut plan = Plan::of(patient(WAIT));
    // A slot for each connection, and no more.
    (plan.clients.count, plan.ports, plan.room) = (62_500, (1024, 64_000), HELD);
    ensure!(plan.slots() == u64::from(HELD), "{} slots", plan.slots());
    let opening = Opening { rate: 1e6, hold: None, total: Some(HELD.into()) };
    let mut world = World::new(&plan, opening, 50)?;
    let open = |world: &World| world.clients.open().0.min(world.servers.open().0);
    let opened = Part::run(&mut world, |world| open(world) == HELD || world.now > WAIT);
    ensure!(open(&world) == HELD, "{} open: {:?}", open(&world), world.clients.counts());
    let memory = resident()? - before;
    let exchanged = 40 * u64::from(HELD);
    let kept = Part::run(&mut world, |world| {
        world.clients.counts().heard == exchanged || world.now > 3 * WAIT
    });
    ensure!(open(&world) == HELD, "{} open: {:?}", open(&world), world.clients.counts());
    let closed = Part::run(&mut world, |world| {
        world.clients.open() == (0, 0) && world.servers.open().0 == 0 || world.now > 6 * WAIT
    });
    let (client, server) = (world.clients.counts(), world.servers.counts());
    let all = u64::from(HELD);
    ensure!((client.clean, server.clean) == (all, all), "{client:?} {server:?}");
    drop(world);
    let parts = [("opened", opened), ("held, and asked once more", kept), ("closed", closed)];
    let took: f64 = parts.iter().map(|(_, part)| part.took).sum();
    let turns: u64 = parts.iter().map(|(_, part)| part.turns).sum();
    let step = Duration::from_secs_f64(took / turns as f64);
    let mut walked = vec![1; memory as usize / size_of::<u64>()];
    let bare = pauses(PROCESSOR, &mut walked, step, LIMIT, Duration::from_secs(10));
    let mut table = Table::new(
        "Ten million connections held",
        vec![
            Column::text("what"),
            Column::values("connections", "M/s"),
            Column::values("longest loop", "ms"),
            Column::values("over a bare loop's", "ms"),
            Column::values("loops above 1 ms", "a second"),
            Column::values("memory of both sides", "GiB"),
        ],
    );
    let over = |longest: f64| Cell::Number(((longest - bare.longest) * 1e3).max(0.0), 2);
    for (what, part) in &parts {
        table.row(vec![
            (*what).into(),
            Cell::Number(f64::from(HELD) / part.took / 1e6, 2),
            Cell::Number(part.longest * 1e3, 2),
            over(part.longest),
            Cell::Number(part.long as f64 / part.took, 2),
        ]);
    }
    let longest = parts.iter().map(|(_, part)| part.longest).fold(0.0, f64::max);
    let long: u64 = parts.iter().map(|(_, part)| part.long).sum();
    table.row(vec![
        "all of it".into(),
        Cell::None,
        Cell::Number(longest * 1e3, 2),
        over(longest),
        Cell::Number(long as f64 / took, 2),
        Cell::Number(memory / f64::from(1 << 30), 3),
    ]);
    table.note(format!(
        "A loop's time is the thread's own, with interrupts; of {turns} loops in {took:.0} s. The bare loop walks \
         through as much memory for 10 s, in steps of {:.0} µs, which is as long as loops were in the mean: its longest \
         was {:.2} ms, and {:.1} a second were above 1 ms.",
        step.as_secs_f64() * 1e6,
        bare.longest * 1e3,
        bare.long as f64 / 10.0,
    ));
    Ok(table)
}
