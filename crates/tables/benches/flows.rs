//! Measures flow table operations: finding, adding, removing and expiring flows.
//!
//! `cargo bench -p thalweg-tables --bench flows`; an item is a packet or a flow, and 128-byte flows
//! are found in random order.

#![allow(clippy::expect_used)]

use std::ops::Range;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use thalweg_tables::flow::{FlowHash, FlowTable, Found, OnExpiry};
use thalweg_tables::hash::mix64;

fn main() {
    divan::main();
}

type Table = FlowTable<2, [u64; 9]>;

const FRAME: usize = 256;
const PACKETS: usize = 1 << 18;
const FLOWS: [u32; 4] = [1, 1 << 10, 1 << 14, 1 << 20];

/// A key like the addresses, ports, protocol and zone of clients of one server.
fn key(n: u32) -> [u64; 2] {
    [u64::from(n >> 12) << 32 | 0x0a00_0001, u64::from(n & 0xfff) << 32 | 80 << 16 | 6]
}

/// The key of the other direction.
fn reverse(n: u32) -> [u64; 2] {
    let [a, b] = key(n);
    [a.rotate_left(32), b | 1 << 63]
}

/// Adds flows frame by frame; the cache lines of a frame's flows are fetched together.
fn add(table: &mut Table, flows: Range<u32>) {
    let mut first = flows.start;
    while first < flows.end {
        let frame = first..flows.end.min(first + FRAME as u32);
        first = frame.end;
        let hashed = frame.clone().map(|n| {
            let keys = (key(n), reverse(n));
            let hashes = (table.hash(&keys.0), table.hash(&keys.1));
            table.prefetch(hashes.0);
            table.prefetch(hashes.1);
            ((keys.0, hashes.0), (keys.1, hashes.1))
        });
        let hashed: Vec<_> = hashed.collect();
        for ((there, back), n) in hashed.into_iter().zip(frame) {
            let added = table.add(there, Some(back), 30_000, ([u64::from(n); 9], ()));
            assert!(added.is_ok(), "{added:?}");
        }
    }
}

fn table(flows: u32) -> Table {
    let mut table = Table::new(flows, 2, 0).expect("address space");
    add(&mut table, 0..flows);
    table
}

/// Finds flows in frames, counts packets and extends expiry, as packets of established connections
/// do.
#[divan::bench(args = FLOWS, sample_count = 20)]
fn find(bencher: Bencher<'_, '_>, flows: u32) {
    let mut table = table(flows);
    let random = |n: usize| (mix64(n as u64) % u64::from(flows)) as u32;
    let keys: Vec<[u64; 2]> = (0..PACKETS)
        .map(|n| if n % 2 == 0 { key(random(n)) } else { reverse(random(n)) })
        .collect();
    let mut hashes = [FlowHash::default(); FRAME];
    let mut found: [Option<Found>; FRAME] = [None; FRAME];
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for frame in keys.chunks(FRAME) {
            table.find_batch(black_box(frame), &mut hashes, &mut found);
            for flow in found.iter().flatten() {
                let counters = table.get_mut(flow.flow());
                counters[0] += 1;
                counters[1] += 64;
                table.extend(flow.flow(), 60_000);
            }
        }
    });
}

/// Finds flows one after the other, each waiting for the one before.
#[divan::bench(args = FLOWS, sample_count = 20)]
fn find_singly(bencher: Bencher<'_, '_>, flows: u32) {
    let table = table(flows);
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        (0..PACKETS as u64).fold(0, |last, n| {
            let key = key(((mix64(n) ^ last) % u64::from(flows)) as u32);
            let found = table.find(&key, table.hash(&key));
            found.map_or(0, |found| table.get(found.flow())[0] & 1)
        })
    });
}

/// Adds and removes flows, with `others` flows in the table.
#[divan::bench(args = [1, 1 << 14, 1 << 20], sample_count = 20)]
fn add_and_remove(bencher: Bencher<'_, '_>, others: u32) {
    const AT_A_TIME: u32 = 1 << 14;
    let mut table = Table::new(others + AT_A_TIME, 2, 0).expect("address space");
    add(&mut table, 0..others);
    bencher.counter(ItemsCount::new(AT_A_TIME)).bench_local(|| {
        add(&mut table, others..others + AT_A_TIME);
        for n in others..others + AT_A_TIME {
            let key = key(n);
            if let Some(found) = table.find(&key, table.hash(&key)) {
                table.remove(found.flow());
            }
        }
    });
}

/// Expires all flows at once.
#[divan::bench(args = [1 << 14, 1 << 20], sample_count = 10)]
fn expire(bencher: Bencher<'_, '_>, flows: u32) {
    bencher.counter(ItemsCount::new(flows)).with_inputs(|| table(flows)).bench_local_refs(
        |table| {
            while table.expire(60_000, FRAME, |_, _| OnExpiry::Remove) {}
            assert!(table.is_empty());
        },
    );
}
