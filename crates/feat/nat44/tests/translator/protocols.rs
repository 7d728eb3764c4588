//! Protocols other than TCP, UDP and ICMP, and what must not leave as it is.

use crate::nat::{FAR, Nat, Out, SHARED, udp};
use std::net::Ipv4Addr;
use thalweg_buffer::Offload;
use thalweg_device::testing::ip4::{framed, ip};
use thalweg_wire::build::{self, Packet};
use thalweg_wire::icmpv4::IcmpRepr;
use thalweg_wire::ip::protocol::{DCCP, SCTP, UDP_LITE};
use thalweg_wire::{checksum, ipv4};

const WORKERS: [usize; 2] = [1, 2];
const DATA: &[u8] = b"some data of an odd length.";

fn packet(number: u8, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Packet {
    let l4 = build::segment(number, from, to, DATA, 3);
    Packet::new().ipv4(from.0, to.0).protocol(number).payload(&l4)
}

/// Each has ports of its own, and a checksum of its own kind.
#[test]
fn all_protocols_with_ports_are_translated() {
    for workers in WORKERS {
        for number in [UDP_LITE, DCCP, SCTP] {
            let mut n = Nat::of(workers);
            n.know(3..9);
            for host in 2..9 {
                let (near, far) = ((ip(0, host), 5000), (FAR, 80));
                // Twice: the second finds a session.
                let mut name = (SHARED, 0);
                for _ in 0..2 {
                    let out = n.one(0, 1, packet(number, near, far));
                    name = (SHARED, out.ports().0);
                    assert_eq!(out.src(), SHARED, "{number}");
                    let want = packet(number, name, far).build();
                    assert_eq!(out.bytes[34..], want[20..], "protocol {number}");
                }
                let back = n.one(1, 0, packet(number, far, name));
                assert_eq!(back.dst(), near.0);
                assert_eq!(back.bytes[34..], packet(number, far, near).build()[20..]);
            }
            assert_eq!(n.sessions().len(), 7);
            let shown = n.lab.cli("show nat44 addresses");
            assert!(shown.contains("7 busy ports of other protocols"), "{shown}");
            n.lab.ok("clear nat44 sessions");
            n.await_no_sessions();
            n.close();
        }
    }
}

/// A checksum that the sender's stack left to the device is completed here: a CRC for SCTP.
#[test]
fn partial_checksums_of_sctp_are_completed() {
    let mut n = Nat::new();
    let (near, far) = ((ip(0, 2), 5000), (FAR, 80));
    let mut sent = packet(SCTP, near, far).build();
    sent[28..32].fill(0);
    let offload =
        Offload { csum_start: 20, csum_offset: 8, needs_csum: true, ..Offload::default() };
    n.lab.receive_offload(0, framed(0, 2, &sent), offload);
    let bytes = n.lab.sent_one(1);
    let out = Out { port: 1, worker: 0, bytes };
    let want = packet(SCTP, (SHARED, out.ports().0), far).build();
    assert_eq!(out.bytes[34..], want[20..]);
    n.close();
}

/// An ICMP error in two fragments: both have the source of the first.
#[test]
fn errors_in_fragments_are_translated_alike() {
    for workers in WORKERS {
        let mut n = Nat::of(workers);
        let out = n.one(0, 1, udp((ip(0, 2), 5000), (FAR, 53)));
        for from in [Ipv4Addr::new(203, 0, 113, 5), FAR] {
            let error = Packet::new().ipv4(from, SHARED).icmp(IcmpRepr::unreachable(3));
            let error = error.id(9).payload(&out.bytes[14..]);
            let l4 = &error.build()[20..];
            let part = |at: usize, end: usize, more: bool| {
                let part = Packet::new().ipv4(from, SHARED).protocol(1).id(9);
                part.fragment(at, more).payload(&l4[at..end]).build()
            };
            let parts = vec![part(0, 48, true), part(48, l4.len(), false)];
            let back = n.pass_all(1, parts);
            assert_eq!(back.len(), 2);
            for part in &back {
                let view = ipv4::check(&part.bytes[14..]).expect("a sound header");
                assert_eq!((view.src(), view.dst()), (from, ip(0, 2)), "{workers}");
            }
            let whole: Vec<u8> = back.iter().flat_map(|p| p.bytes[34..].to_vec()).collect();
            assert!(checksum::verify(&whole));
        }
        n.close();
    }
}

#[test]
fn each_reason_has_a_counter_of_its_own() {
    let mut n = Nat::new();
    let (near, far) = (ip(0, 2), (FAR, 53));
    let quote = udp(far, (near, 5000)).build();
    // A redirect, a router advertisement, an error to someone else than it is about.
    for (kind, to) in [(5, FAR), (9, FAR), (3, Ipv4Addr::new(198, 51, 100, 99))] {
        let repr = IcmpRepr { kind, ..IcmpRepr::unreachable(1) };
        let message = Packet::new().ipv4(near, to).icmp(repr).payload(&quote);
        assert!(n.pass(0, message).iter().all(|o| o.port != 1), "type {kind}");
    }
    assert_eq!(n.lab.count("nat44-ed-in2out", "unsupported ICMP type"), 3);
    // The first eight bytes of TCP, and the first four of UDP.
    for (number, length) in [(6, 8), (17, 4)] {
        let l4 = [&[19, 136, 0, 53][..], &[0; 16]].concat();
        let short = Packet::new().ipv4(near, FAR).protocol(number).payload(&l4[..length]);
        assert!(n.pass(0, short).is_empty());
    }
    assert_eq!(n.lab.count("nat44-ed-in2out", "incomplete transport header"), 2);
    n.lab.ok("set nat44 session limit 1");
    n.lab.c.sync();
    for port in 5000..5004 {
        n.pass(0, udp((near, port), far));
    }
    assert_eq!(n.lab.count("nat44-ed-in2out", "max VRF sessions exceeded"), 3);
    assert_eq!(n.lab.count("nat44-ed-in2out", "max user sessions exceeded"), 0);
    n.close();
}

/// If one of several paths leads outside, nothing goes there as it is, whichever comes first.
#[test]
fn one_path_of_several_leads_outside() {
    let all = Ipv4Addr::new(100, 64, 0, 0);
    for paths in [["10.0.1.2 test1", "10.0.2.2 test2"], ["10.0.2.2 test2", "10.0.1.2 test1"]] {
        let mut n = Nat::new();
        let [first, second] = paths;
        n.lab.ok(&format!("ip route add {all}/16 via {first} via {second}"));
        let (mut outside, mut inside) = (0, 0);
        for port in 5000..5040 {
            let to = Ipv4Addr::from(all.to_bits() + u32::from(port));
            let sent = n.pass(0, udp((ip(0, 2), port), (to, 53)));
            assert_eq!(sent.len(), 1);
            assert!(sent[0].port != 1 || sent[0].src() == SHARED, "{first} first");
            outside += u32::from(sent[0].port == 1);
            inside += u32::from(sent[0].port == 2);
        }
        assert!(outside > 0 && inside > 0, "{outside} and {inside}");
        n.close();
    }
}
