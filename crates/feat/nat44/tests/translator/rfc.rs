//! Tests of RFC 4787, RFC 5382 and RFC 5508 requirements.

use crate::nat::{FAR, Nat, SHARED, tcp, udp};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::ip;

/// RFC 4787 REQ-3: no two inside hosts share an external port.
#[test]
fn ports_are_not_shared() {
    let mut n = Nat::new();
    let mut seen = BTreeSet::new();
    for host in 2..=4 {
        for port in 6000..6050 {
            let out = n.one(0, 1, udp((ip(0, host), port), (FAR, 53)));
            assert!(seen.insert(out.ports().0), "port {} twice", out.ports().0);
        }
    }
    n.close();
}

/// RFC 4787 REQ-2: a host keeps its external address.
#[test]
fn a_host_keeps_its_address() {
    let mut n = Nat::new();
    n.lab.ok("nat44 add address 192.0.2.2 - 192.0.2.9");
    let mut all = BTreeSet::new();
    for host in 2..=60 {
        let address = |n: &mut Nat, to: u16| n.one(0, 1, udp((ip(0, host), 7), (FAR, to))).src();
        let first = address(&mut n, 1);
        assert!((2..20).all(|to| address(&mut n, to) == first));
        all.insert(first);
    }
    assert!(all.len() > 4, "{all:?}");
    n.close();
}

/// RFC 4787 REQ-8: only the contacted host can reply.
#[test]
fn others_do_not_get_in() {
    let mut n = Nat::new();
    let mapped = (SHARED, n.one(0, 1, udp((ip(0, 2), 5000), (FAR, 53))).ports().0);
    assert_eq!(n.pass(1, udp((FAR, 54), mapped)).len(), 0);
    assert_eq!(n.pass(1, udp((Ipv4Addr::new(198, 51, 100, 8), 53), mapped)).len(), 0);
    assert_eq!(n.pass(1, tcp((FAR, 53), mapped, 2)).len(), 0);
    assert_eq!(n.pass(1, udp((FAR, 53), mapped)).len(), 1);
    n.close();
}

/// RFC 5382 REQ-2: simultaneous open works.
#[test]
fn simultaneous_opening() {
    let mut n = Nat::new();
    let (near, far) = ((ip(0, 2), 5000), (FAR, 80));
    let mapped = (SHARED, n.one(0, 1, tcp(near, far, 2)).ports().0);
    n.one(1, 0, tcp(far, mapped, 2));
    n.one(0, 1, tcp(near, far, 0x12));
    n.one(1, 0, tcp(far, mapped, 0x12));
    n.one(0, 1, tcp(near, far, 0x10));
    assert!(n.sessions()[0].left > 7_000_000);
    n.close();
}

/// RFC 5382 REQ-5: established connections time out after more than two hours, others after four
/// minutes.
#[test]
fn tcp_timeouts() {
    let mut n = Nat::new();
    let (near, far) = ((ip(0, 2), 5000), (FAR, 80));
    let mapped = (SHARED, n.one(0, 1, tcp(near, far, 2)).ports().0);
    assert_eq!(n.sessions()[0].left.div_ceil(1000), 240);
    n.one(1, 0, tcp(far, mapped, 0x12));
    n.one(0, 1, tcp(near, far, 0x10));
    assert_eq!(n.sessions()[0].left.div_ceil(1000), 7440);
    n.one(1, 0, tcp(far, mapped, 4));
    assert_eq!(n.sessions()[0].left.div_ceil(1000), 240);
    n.close();
}

/// Packets that open no connection create no session.
#[test]
fn only_a_syn_opens() {
    let mut n = Nat::new();
    for flags in [0x10, 0x12, 4, 1, 0x14, 0] {
        assert!(n.pass(0, tcp((ip(0, 2), 5000), (FAR, 80), flags)).is_empty());
    }
    assert!(n.sessions().is_empty());
    n.close();
}

/// RFC 5382 REQ-10, RFC 5508 REQ-4: ICMP errors are translated, and do not end sessions.
#[test]
fn errors_end_nothing() {
    let mut n = Nat::new();
    let out = n.one(0, 1, tcp((ip(0, 2), 5000), (FAR, 80), 2));
    let mut error = vec![0; 600];
    let quoted = out.bytes[14..].to_vec();
    let view = thalweg_wire::ipv4::Ipv4View::parse(&quoted).unwrap();
    let repr = thalweg_wire::icmpv4::IcmpRepr::unreachable(3);
    let len = thalweg_wire::icmpv4::emit_error(repr, FAR, &view, &mut error).unwrap();
    error.truncate(len);
    assert_eq!(n.pass_all(1, vec![error]).len(), 1);
    assert_eq!(n.sessions().len(), 1);
    n.close();
}
