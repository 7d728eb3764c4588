//! Arbitrary frames: nothing panics, and every packet is accounted for.

use crate::router;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use thalweg_device::testing::ip6::{framed, ip, link, udp};
use thalweg_wire::icmpv6::fill_checksum;
use thalweg_wire::ipv6::Ipv6Repr;

/// An ICMPv6 message with a right checksum, behind extension headers.
fn message(kind: u8, body: &[u8], before: u8, hops: u8, ours: bool) -> Vec<u8> {
    let (src, dst) =
        if kind.is_multiple_of(2) { (ip(0, 2), ip(0, 1)) } else { (link(2), ip(0, 1)) };
    let dst = if ours { dst } else { "ff02::1".parse().expect("a group") };
    let mut icmp = [&[kind, 0, 0, 0, 0, 0, 0, 0][..], body].concat();
    fill_checksum(&src, &dst, &mut icmp).expect("a message");
    let (first, padding): (u8, &[u8]) = match before % 4 {
        0 => (0, &[58, 0, 1, 4, 0, 0, 0, 0]),
        1 => (60, &[58, 0, 1, 4, 0, 0, 0, 0]),
        2 => (44, &[58, 0, 0, 0, 0, 0, 0, 9]),
        _ => (58, &[]),
    };
    let length = (padding.len() + icmp.len()) as u16;
    let mut packet = vec![0; 40];
    let header = Ipv6Repr { hop_limit: hops, ..Ipv6Repr::new(src, dst, first, length) };
    header.emit(&mut packet).expect("room");
    packet.extend(padding);
    packet.extend(icmp);
    packet
}

/// A frame: noise after a valid Ethernet header, neighbour discovery of any content, or a valid
/// packet with flaws.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..120);
    let noise = bytes.clone().prop_map(|b| framed(0, 2, &b));
    let kinds = prop_oneof![Just(135u8), Just(136), 128u8..138, any::<u8>()];
    let hops = prop_oneof![Just(255u8), any::<u8>()];
    let discovery = (kinds, bytes, any::<u8>(), hops, any::<bool>()).prop_map(
        |(kind, body, before, hops, ours)| framed(0, 2, &message(kind, &body, before, hops, ours)),
    );
    let flaws = prop::collection::vec((0usize..60, any::<u8>()), 0..4);
    let flawed = (0u8..3, 0u8..255, any::<u8>(), flaws, 0usize..90, any::<bool>()).prop_map(
        |(n, host, ttl, flaws, cut, long)| {
            let len = if long { 2000 } else { 40 };
            let mut p = udp(ip(0, 2), ip(n, host), len).ttl(ttl).build();
            for (at, value) in flaws {
                p[at] = value;
            }
            if cut < 60 {
                p.truncate(cut);
            }
            framed(0, 2, &p)
        },
    );
    prop_oneof![1 => noise, 4 => discovery, 4 => flawed]
}

#[test]
fn any_bytes_are_accounted_for() {
    let mut lab = router();
    lab.ok("set interface mtu packet 1280 test1\n\
         ip route add 2001:db8:0:2::80/121 prohibit\n\
         ip route add 2001:db8:0:1::80/121 via 2001:db8:0:1::2 via 2001:db8:0:2::2");
    // Unknown hosts do not answer: their packets are held, then dropped.
    let lab = RefCell::new(lab);
    let mut runner =
        TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    let run = runner.run(&prop::collection::vec(any_frame(), 1..40), |frames| {
        let mut lab = lab.borrow_mut();
        lab.deliver(0, frames);
        lab.seen();
        Ok(())
    });
    run.expect("no panic");
    lab.into_inner().close();
}
