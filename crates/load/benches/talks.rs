//! Measures connections without a device: clients and servers hand each other their packets.
//!
//! `cargo bench -p thalweg-load --bench talks`; an item is a connection of seven packets that was
//! opened, answered, closed and kept in TIME_WAIT, with timers and checksums. Instructions do not
//! depend on what else the machine does: `valgrind --tool=callgrind` with `--once N` runs N of
//! them, with all times a 25th of the usual ones, so that timers have their part from 30,000 on.
//! `--for S` prints how many a second take place, second by second, for S seconds.

#![allow(clippy::expect_used, clippy::print_stdout)]

use std::time::Instant;

use divan::Bencher;
use divan::counter::ItemsCount;
use thalweg_load::Sink;
use thalweg_load::talk::{Clients, Exchange, Opening, Plan, Protocol, Servers, Talk};

/// Connections opened per turn.
const BATCH: usize = 32;
/// Buffers of one direction: a turn's packets.
const BUFFERS: usize = 16 * BATCH;
const BUFFER: usize = 256;

fn main() {
    let number = |option: &str| -> Option<u64> {
        let mut words = std::env::args().skip_while(|word| word != option).skip(1);
        words.next().and_then(|count| count.parse().ok())
    };
    if let Some(count) = number("--once") {
        let mut world = World::new(25);
        world.run(count);
        println!("{} connections", world.clients.counts().completed);
    } else if let Some(seconds) = number("--for") {
        let mut world = World::new(1);
        world.run(1_000_000);
        for _ in 0..seconds {
            let (start, before) = (Instant::now(), world.clients.counts().completed);
            while start.elapsed().as_secs() < 1 {
                world.run(10_000);
            }
            let count = world.clients.counts().completed - before;
            println!("{:.3} M/s", count as f64 / start.elapsed().as_secs_f64() / 1e6);
        }
    } else {
        divan::main();
    }
}

/// Packets on their way in one direction, in buffers that are used in turn.
struct Way {
    memory: Vec<u8>,
    lengths: Vec<usize>,
}

impl Way {
    fn new() -> Way {
        Way { memory: vec![0; BUFFERS * BUFFER], lengths: Vec::with_capacity(BUFFERS) }
    }
}

impl Sink for Way {
    #[inline]
    fn frame(&mut self, length: usize) -> Option<&mut [u8]> {
        let at = self.lengths.len() * BUFFER;
        self.lengths.push(length);
        self.memory.get_mut(at..at + length)
    }
}

struct World {
    clients: Clients,
    servers: Servers,
    ways: [Way; 2],
    now: u64,
}

impl World {
    /// `faster`: by what all times are divided.
    fn new(faster: u64) -> World {
        let mut plan = Plan::of(Talk::exchange("t", Protocol::Tcp, 8080, &Exchange::default()));
        // Room for half a second of TIME_WAIT at 1.6 million a second, and some to spare.
        plan.room = 1 << 20;
        let times = &mut plan.times;
        for time in [
            &mut times.first,
            &mut times.least,
            &mut times.most,
            &mut times.time_wait,
            &mut times.delayed_ack,
        ] {
            *time /= faster;
        }
        let mut clients = Clients::new(&plan, 1, 0).expect("a plan");
        let servers = Servers::new(&plan, 1, 0).expect("a plan");
        // A turn of 20 microseconds opens a batch.
        clients.set_opening(Opening { rate: 50_000.0 * BATCH as f64, hold: None, total: None }, 0);
        World { clients, servers, ways: [Way::new(), Way::new()], now: 0 }
    }

    /// Runs until this many more have completed.
    fn run(&mut self, count: u64) {
        let end = self.clients.counts().completed + count;
        let [there, back] = &mut self.ways;
        while self.clients.counts().completed < end {
            self.now += 20;
            there.lengths.clear();
            back.lengths.clear();
            self.servers.poll(self.now, 4 * BATCH, back);
            self.clients.poll(self.now, 4 * BATCH, there);
            let (mut heard, mut answered) = (0, 0);
            while heard < there.lengths.len() || answered < back.lengths.len() {
                while let Some(length) = there.lengths.get(heard) {
                    let frame = &there.memory[heard * BUFFER..][..*length];
                    self.servers.receive(self.now, frame, back);
                    heard += 1;
                }
                while let Some(length) = back.lengths.get(answered) {
                    let frame = &back.memory[answered * BUFFER..][..*length];
                    self.clients.receive(self.now, frame, there);
                    answered += 1;
                }
            }
        }
    }
}

#[divan::bench]
fn short_connections(bencher: Bencher<'_, '_>) {
    const COUNT: u64 = 100_000;
    let mut world = World::new(1);
    // TIME_WAIT is full then.
    world.run(1_000_000);
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| world.run(COUNT));
    let counts = world.clients.counts();
    assert_eq!((counts.clean, counts.no_tuple), (counts.completed, 0));
}
