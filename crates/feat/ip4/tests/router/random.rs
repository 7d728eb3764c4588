//! Arbitrary frames: nothing panics, and every packet is accounted for.

use crate::router;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use thalweg_device::testing::ip4::{framed, ip, udp};
use thalweg_wire::build::Packet;
use thalweg_wire::checksum;

/// A frame: noise, noise after a valid Ethernet header, or a valid packet with flaws.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..120);
    let noise = bytes.clone();
    let ether = (bytes.clone(), any::<bool>()).prop_map(|(b, arp)| {
        let mut f = framed(0, 2, &b);
        f[13] = if arp { 6 } else { 0 };
        f
    });
    let kinds = (0usize..6, 0u8..3, 0u8..255, any::<u8>());
    let flaws = prop::collection::vec((0usize..60, any::<u8>()), 0..4);
    let flawed = (kinds, flaws, any::<bool>(), 0usize..90).prop_map(|(kind, flaws, sum, cut)| {
        let (kind, n, host, ttl) = kind;
        let dst = ip(n, host);
        let base = Packet::new().ipv4(ip(0, 2), dst).ttl(ttl);
        let mut p = match kind {
            0 => udp(ip(0, 2), dst, 40).ttl(ttl).build(),
            1 => base.icmp_echo_request(1, 2).payload(&[7; 30]).build(),
            2 => base.icmp_echo_reply(1, 2).build(),
            3 => base.tcp(1, 2).build(),
            4 => base.ip_options(&[7, 7, 4, 0, 0, 0, 0]).udp(1, 2).build(),
            _ => udp(ip(0, 2), dst, 2000).ttl(ttl).build(),
        };
        for (at, value) in flaws {
            if let Some(b) = p.get_mut(at) {
                *b = value;
            }
        }
        let header = usize::from(p[0] & 15) * 4;
        if sum && (20..=p.len()).contains(&header) {
            p[10..12].fill(0);
            let sum = checksum::checksum(&p[..header]);
            p[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        if cut < 60 {
            p.truncate(cut);
        }
        framed(0, 2, &p)
    });
    prop_oneof![1 => noise, 2 => ether, 6 => flawed]
}

#[test]
fn any_bytes_are_accounted_for() {
    let mut lab = router();
    lab.ok("set interface mtu packet 576 test1\n\
         ip route add 10.0.2.128/25 prohibit\n\
         ip route add 10.0.1.128/25 via 10.0.1.2 test1 via 10.0.2.2 test2");
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
