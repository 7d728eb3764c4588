//! Measures encoding and decoding of messages.
//!
//! `cargo bench -p thalweg-api --bench codec`

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use thalweg_api::memclnt::{ControlPingReply, MessageTableEntry, SockclntCreateReply};
use thalweg_api::wire::Reader;
use thalweg_api::{Head, Message, encode};

fn main() {
    divan::main();
}

fn ping() -> ControlPingReply {
    ControlPingReply { client_index: 1, vpe_pid: 2 }
}

/// The reply to `sockclnt_create` with a table of messages.
fn table() -> SockclntCreateReply {
    let entry = |index| MessageTableEntry { index, name: "sw_interface_details_6c221fc7".into() };
    SockclntCreateReply {
        client_index: 0,
        context: 7,
        response: 0,
        index: 1,
        message_table: (0..1000).map(entry).collect(),
    }
}

fn written<M: Message>(bencher: Bencher<'_, '_>, message: &M) {
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(1u32)).bench_local(|| {
        out.clear();
        encode(Head::default(), black_box(message), &mut out);
        out.len()
    });
}

fn read<M: Message>(bencher: Bencher<'_, '_>, message: &M) {
    let mut body = Vec::new();
    message.encode_body(&mut body);
    bencher
        .counter(ItemsCount::new(1u32))
        .bench(|| M::decode_body(&mut Reader::new(black_box(&body))));
}

#[divan::bench]
fn a_short_message_written(bencher: Bencher<'_, '_>) {
    written(bencher, &ping());
}

#[divan::bench]
fn a_short_message_read(bencher: Bencher<'_, '_>) {
    read(bencher, &ping());
}

#[divan::bench]
fn a_table_of_a_thousand_written(bencher: Bencher<'_, '_>) {
    written(bencher, &table());
}

#[divan::bench]
fn a_table_of_a_thousand_read(bencher: Bencher<'_, '_>) {
    read(bencher, &table());
}
