//! Streams without a device between: each packet is written into another buffer, tagged with its
//! number, received from there, and counted.

use std::hint::black_box;

use anyhow::{Result, ensure};
use thalweg_bench_common::{Cell, Column, Series, Table};
use thalweg_load::Sink;
use thalweg_load::stream::{Field, Load, Plan, Rate, Receiver, Senders, Side, Size, Steps, Stream};

use crate::own;

/// Packets of a batch, and batches of a round.
const BATCH: usize = 64;
const BATCHES: usize = 1 << 17;
/// Buffers, more than the nearest cache holds, as those of a router.
const BUFFERS: usize = 1024;
const BUFFER: usize = 2048;

/// Buffers that are used in turn.
struct Buffers {
    memory: Vec<u8>,
    used: Vec<(usize, usize)>,
    next: usize,
}

impl Sink for Buffers {
    #[inline]
    fn frame(&mut self, length: usize) -> Option<&mut [u8]> {
        let at = self.next * BUFFER;
        self.next = (self.next + 1) % BUFFERS;
        self.used.push((at, length));
        self.memory.get_mut(at..at + length)
    }
}

/// One end sends, the other receives.
struct Ends {
    senders: Senders,
    receiver: Receiver,
    buffers: Buffers,
    /// Time in nanoseconds.
    now: u64,
}

impl Ends {
    fn new(streams: Vec<Stream>) -> Result<Ends> {
        let plan = Plan { late: u64::MAX, ..Plan::of(streams) };
        let mut senders = Senders::new(&plan, Side::A, 1, 0)?;
        let receiver = Receiver::new(&plan, Side::B, 1)?;
        senders.set_load(Load::Total(Rate::Packets(64e6)), 0);
        senders.set_judging(true, 0);
        let memory = vec![0; BUFFERS * BUFFER];
        let buffers = Buffers { memory, used: Vec::with_capacity(BATCH), next: 0 };
        Ok(Ends { senders, receiver, buffers, now: 0 })
    }

    /// Sends and receives a round's packets; returns how many a second of the thread's own.
    fn round(&mut self) -> Result<f64> {
        let (begin, before) = (own(), self.receiver.totals().0.packets);
        for _ in 0..BATCHES {
            self.now += 1000;
            self.buffers.used.clear();
            self.senders.poll(self.now, BATCH, &mut self.buffers);
            for (at, length) in &self.buffers.used {
                let frame = &self.buffers.memory[*at..*at + *length];
                self.receiver.receive(self.now, black_box(frame));
            }
        }
        let took = own() - begin;
        let (sent, received) = (self.senders.totals().0.sent, self.receiver.totals().0.packets);
        ensure!(sent == received, "{sent} sent, {received} received");
        Ok((received - before) as f64 / took)
    }
}

fn address(last: u8) -> u32 {
    u32::from_be_bytes([16, 0, 0, last])
}

const FAR: u32 = 0x3000_0001;

fn one(name: &str) -> Stream {
    let (a, b) = (Field::one(address(1)), Field::one(FAR));
    Stream::udp(name, a, b, (Field::one(1025u16), Field::one(12u16)))
}

/// Both addresses count up to 251 together, so that packets are rendered beforehand.
fn prepared() -> Stream {
    let (a, b) =
        (Field::count(address(4), address(254)), Field::count(0x3000_0004u32, 0x3000_00feu32));
    let with = b.stepping(Steps::With("ipv4.source".into()));
    Stream::udp("two", a, with, (Field::one(1025u16), Field::one(12u16)))
}

fn one_variable() -> Stream {
    let a = Field::count(0x1000_0000u32, 0x1000_ffffu32);
    Stream::udp("one", a, Field::one(FAR), (Field::one(1025u16), Field::one(12u16)))
}

fn three_random() -> Stream {
    let a = Field::random(0x1000_0000u32, 0x1000_ffffu32, 1);
    let b = Field::random(0x3000_0000u32, 0x3000_ffffu32, 2);
    let ports = (Field::random(1024u16, 65535u16, 3), Field::one(12u16));
    Stream::udp("three", a, b, ports)
}

/// Number `n` of many kinds of streams: size, fields and rate are its own.
fn kind(n: u8) -> Stream {
    Stream {
        rate: Rate::Packets(f64::from(n) + 1.0),
        size: Size::One(64 + 4 * u16::from(n)),
        ..Stream::udp(
            &format!("stream {n}"),
            Field::count(address(1), address(1) + u32::from(n)),
            Field::one(FAR),
            (Field::count(1024u16, 1024 + 10 * u16::from(n)), Field::one(u16::from(n))),
        )
    }
}

/// Packets a second of streams of several kinds.
pub fn rate(rounds: usize) -> Result<Table> {
    let rows: [(&str, Vec<Stream>); 7] = [
        ("constant", vec![one("one")]),
        ("prepared: both addresses of 251", vec![prepared()]),
        ("one variable: an address of 65536, with checksum", vec![one_variable()]),
        ("two addresses and a port at random", vec![three_random()]),
        ("IMIX", vec![Stream { size: Size::imix(), ..one("imix") }]),
        ("100 streams, each of another kind", (0..100).map(kind).collect()),
        ("one of them, of their mean size", vec![kind(66)]),
    ];
    let columns = vec![Column::text("what"), Column::values("rate", "Mpps")];
    let mut table = Table::new("Load tester: packets a second", columns);
    let mut all = Vec::new();
    for (name, streams) in rows {
        let mut ends = Ends::new(streams)?;
        ends.round()?;
        all.push((name, ends, Series::default()));
    }
    // Rounds take turns, so that a busy time of the machine does not meet one row alone.
    for _ in 0..rounds {
        for (_, ends, series) in &mut all {
            series.push(ends.round()? / 1e6);
        }
    }
    for (name, _, series) in &all {
        table.row(vec![(*name).into(), Cell::series(series, 1)]);
    }
    table.note("64 bytes where nothing else is said; in seconds of the thread's own.");
    Ok(table)
}
