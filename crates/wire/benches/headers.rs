//! Measures headers and checksums.
//!
//! `cargo bench -p thalweg-wire --bench headers`

use std::net::{Ipv4Addr, Ipv6Addr};

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use thalweg_wire::build::Packet;
use thalweg_wire::{checksum, flow, ipv4};

fn main() {
    divan::main();
}

const FROM: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const TO: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

#[divan::bench(args = [20, 64, 1500, 9000])]
fn checksum_of(bencher: Bencher<'_, '_>, length: usize) {
    let data: Vec<u8> = (0..length).map(|n| n as u8).collect();
    bencher.counter(BytesCount::new(length)).bench(|| checksum::checksum(black_box(&data)));
}

#[divan::bench]
fn ipv4_header_checked(bencher: Bencher<'_, '_>) {
    let packet = Packet::new().ipv4(FROM, TO).udp(1, 2).build();
    bencher.counter(ItemsCount::new(1u32)).bench(|| ipv4::check(black_box(&packet)).is_ok());
}

#[divan::bench]
fn five_tuple_of_ipv4(bencher: Bencher<'_, '_>) {
    let packet = Packet::new().ipv4(FROM, TO).udp(1, 2).build();
    bencher.counter(ItemsCount::new(1u32)).bench(|| flow::five_tuple(black_box(&packet)));
}

#[divan::bench]
fn five_tuple_of_ipv6(bencher: Bencher<'_, '_>) {
    let packet = Packet::new().ipv6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST).tcp(1, 2).build();
    bencher.counter(ItemsCount::new(1u32)).bench(|| flow::five_tuple(black_box(&packet)));
}

#[divan::bench]
fn hash_of_ipv4(bencher: Bencher<'_, '_>) {
    bencher
        .counter(ItemsCount::new(1u32))
        .bench(|| flow::hash_v4(black_box(FROM), black_box(TO), 17, black_box(1), 2));
}
