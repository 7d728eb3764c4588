//! Measures stateless streams without a device: each packet is written into a fresh buffer, and
//! received from there.
//!
//! `cargo bench -p thalweg-load --bench streams`; an item is a packet that was sent, tagged,
//! received and counted.

#![allow(clippy::expect_used)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use thalweg_load::Sink;
use thalweg_load::stream::{
    Caching, Field, Load, Plan, Rate, Receiver, Senders, Side, Size, Steps, Stream,
};

fn main() {
    divan::main();
}

/// Packets of a batch, and batches that are measured together.
const BATCH: usize = 64;
const BATCHES: usize = 1024;
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

fn address(last: u8) -> u32 {
    u32::from_be_bytes([16, 0, 0, last])
}

fn one(name: &str) -> Stream {
    let (a, b) = (Field::one(address(1)), Field::one(0x3000_0001u32));
    Stream::udp(name, a, b, (Field::one(1025u16), Field::one(12u16)))
}

fn run(bencher: Bencher<'_, '_>, streams: Vec<Stream>) {
    let plan = Plan { late: u64::MAX, ..Plan::of(streams) };
    let mut senders = Senders::new(&plan, Side::A, 1, 0).expect("a plan");
    let mut receiver = Receiver::new(&plan, Side::B, 1).expect("a plan");
    senders.set_load(Load::Total(Rate::Packets(64e6)), 0);
    senders.set_judging(true, 0);
    let memory = vec![0; BUFFERS * BUFFER];
    let mut buffers = Buffers { memory, used: Vec::with_capacity(BATCH), next: 0 };
    let mut now = 0;
    bencher.counter(ItemsCount::new(BATCH * BATCHES)).bench_local(|| {
        for _ in 0..BATCHES {
            now += 1000;
            buffers.used.clear();
            senders.poll(now, BATCH, &mut buffers);
            for (at, length) in &buffers.used {
                receiver.receive(now, black_box(&buffers.memory[*at..*at + *length]));
            }
        }
    });
    let (sent, received) = (senders.totals().0, receiver.totals().0);
    assert_eq!(sent.sent, received.packets);
}

/// A constant packet.
#[divan::bench]
fn constant(bencher: Bencher<'_, '_>) {
    run(bencher, vec![one("one")]);
}

/// Both addresses count up to 251, and packets are rendered beforehand.
#[divan::bench]
fn prepared(bencher: Bencher<'_, '_>) {
    let (a, b) =
        (Field::count(address(4), address(254)), Field::count(0x3000_0004u32, 0x3000_00feu32));
    let with = b.stepping(Steps::With("ipv4.source".into()));
    run(bencher, vec![Stream::udp("two", a, with, (Field::one(1025u16), Field::one(12u16)))]);
}

/// One address of 65536, with right checksums.
#[divan::bench]
fn one_variable(bencher: Bencher<'_, '_>) {
    let a = Field::count(0x1000_0000u32, 0x1000_ffffu32);
    let ports = (Field::one(1025u16), Field::one(12u16));
    run(bencher, vec![Stream::udp("one", a, Field::one(0x3000_0001u32), ports)]);
}

/// Both addresses and a port at random, with right checksums.
#[divan::bench]
fn three_random(bencher: Bencher<'_, '_>) {
    let a = Field::random(0x1000_0000u32, 0x1000_ffffu32, 1);
    let b = Field::random(0x3000_0000u32, 0x3000_ffffu32, 2);
    let ports = (Field::random(1024u16, 65535u16, 3), Field::one(12u16));
    run(bencher, vec![Stream::udp("three", a, b, ports)]);
}

/// Sizes of 64, 594 and 1518 bytes, 28 : 16 : 4.
#[divan::bench]
fn imix(bencher: Bencher<'_, '_>) {
    run(bencher, vec![Stream { size: Size::imix(), ..one("imix") }]);
}

/// A hundred streams of constant packets.
#[divan::bench]
fn hundred_streams(bencher: Bencher<'_, '_>) {
    let stream = |n: u8| Stream {
        rate: Rate::Packets(f64::from(n) + 1.0),
        caching: Caching::Auto,
        ..one(&format!("stream {n}"))
    };
    run(bencher, (0..100).map(stream).collect());
}

/// Number `n` of many kinds of streams: size, fields and rate are its own.
fn kind(n: u8) -> Stream {
    Stream {
        rate: Rate::Packets(f64::from(n) + 1.0),
        size: Size::One(64 + 4 * u16::from(n)),
        ..Stream::udp(
            &format!("stream {n}"),
            Field::count(address(1), address(1) + u32::from(n)),
            Field::one(0x3000_0001u32),
            (Field::count(1024u16, 1024 + 10 * u16::from(n)), Field::one(u16::from(n))),
        )
    }
}

/// A hundred kinds of streams.
#[divan::bench]
fn hundred_kinds(bencher: Bencher<'_, '_>) {
    run(bencher, (0..100).map(kind).collect());
}

/// One of them, with the size of the mean packet of them all.
#[divan::bench]
fn one_kind(bencher: Bencher<'_, '_>) {
    run(bencher, vec![kind(66)]);
}
