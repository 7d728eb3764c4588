//! Measures single operations.
//!
//! `cargo bench -p thalweg-tables --bench tables`

#![allow(clippy::unwrap_used)]

use std::sync::LazyLock;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use thalweg_tables::Ipv4Prefix;
use thalweg_tables::hash::mix64;
use thalweg_tables::lpm4::{Leaf, Lpm4, Lpm4Config, Lpm4Reader};
use thalweg_tables::{Domain, IndexPool, snapshot};

fn main() {
    divan::main();
}

const ADDRS: usize = 1 << 16;
const FRAME: usize = 256;

/// Returns different /20 to /24 prefixes, as many as the Internet has of them.
fn prefixes(count: u32) -> Vec<Ipv4Prefix> {
    let one =
        |n: u32| Ipv4Prefix::new(n.wrapping_mul(0x9e37_79b1), 24 - (n % 9).saturating_sub(4) as u8);
    (0..count).filter_map(|n| one(n).ok()).collect()
}

fn leaf(n: u32) -> Leaf {
    Leaf::new(n + 1).unwrap_or(const { Leaf::new(1).unwrap() })
}

fn table(routes: u32) -> Option<Lpm4> {
    let mut lpm = Lpm4::new(Lpm4Config::default()).ok()?;
    for (prefix, n) in prefixes(routes).into_iter().zip(0..) {
        lpm.insert(prefix, leaf(n)).ok()?;
    }
    Some(lpm)
}

/// A table of half a million routes that is built once, and random addresses.
static TABLE: LazyLock<Option<(Lpm4Reader, Vec<u32>)>> = LazyLock::new(|| {
    let reader = table(500_000)?.reader();
    Some((reader, (0..ADDRS as u64).map(|n| mix64(n) as u32).collect()))
});

#[divan::bench(args = [64, ADDRS])]
fn lpm4_lookup(bencher: Bencher<'_, '_>, different: usize) {
    let Some((reader, addrs)) = &*TABLE else { return };
    bencher.counter(ItemsCount::new(ADDRS)).bench(|| {
        let chunks = addrs[..different].iter().cycle().take(ADDRS);
        chunks.fold(0, |sum, addr| sum ^ reader.lookup(black_box(*addr)))
    });
}

#[divan::bench(args = [64, ADDRS])]
fn lpm4_lookup_batch(bencher: Bencher<'_, '_>, different: usize) {
    let Some((reader, addrs)) = &*TABLE else { return };
    let frames: Vec<u32> = addrs[..different].iter().copied().cycle().take(ADDRS).collect();
    bencher.counter(ItemsCount::new(ADDRS)).bench_local(|| {
        let mut leaves = [0; FRAME];
        for frame in frames.chunks(FRAME) {
            reader.lookup_batch(black_box(frame), &mut leaves);
            black_box(&leaves);
        }
    });
}

/// Adds 1000 routes to a hundred thousand, and removes them.
#[divan::bench]
fn lpm4_insert_and_remove(bencher: Bencher<'_, '_>) {
    let Some(mut lpm) = table(100_000) else { return };
    let more = &prefixes(101_000)[100_000..];
    bencher.counter(ItemsCount::new(more.len())).bench_local(|| {
        let added = more.iter().filter(|p| lpm.insert(**p, leaf(7)).is_ok()).count();
        (added, more.iter().filter(|p| lpm.remove(**p).is_some()).count())
    });
}

#[divan::bench]
fn index_alloc_and_free(bencher: Bencher<'_, '_>) {
    let domain = Domain::new();
    let mut pool = IndexPool::new(1 << 20);
    bencher.counter(ItemsCount::new(FRAME)).bench_local(|| {
        let taken: Vec<u32> = (0..FRAME).filter_map(|_| pool.alloc(&domain).ok()).collect();
        let tag = domain.tag();
        taken.iter().filter(|index| pool.free_after(**index, tag).is_ok()).count()
    });
}

#[divan::bench]
fn snapshot_load(bencher: Bencher<'_, '_>) {
    let domain = Domain::new();
    let (_writer, shared) = snapshot::channel(7u64);
    let Ok(mut reader) = domain.register() else { return };
    bencher.bench_local(|| {
        let guard = reader.enter();
        *shared.load(&guard)
    });
}

#[divan::bench]
fn snapshot_publish(bencher: Bencher<'_, '_>) {
    let domain = Domain::new();
    let (mut writer, _shared) = snapshot::channel(7u64);
    bencher.bench_local(|| {
        writer.publish(&domain, black_box(8));
        domain.reclaim()
    });
}
