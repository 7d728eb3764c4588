//! Behaviour that users of VPP rely on, beyond the [matrix](crate::matrix).

use crate::nat::{FAR, Nat, SHARED, echo, tcp, udp};
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_device::testing::ip4::ip;
use thalweg_feat_nat44::counters::{Counters, NAMES};
use thalweg_wire::build::Packet;

const SYN: u8 = 2;
const ACK: u8 = 16;

/// VPP: the host's address as a little-endian number, less one, modulo the number of addresses.
#[test]
fn hosts_are_spread_over_addresses_as_by_vpp() {
    let mut n = Nat::of(1);
    n.lab.ok("nat44 add address 192.0.2.1 del\nnat44 add address 192.0.2.1 - 192.0.2.99");
    for host in 2..102 {
        let number = u32::from_le_bytes(ip(0, host).octets());
        let right = Ipv4Addr::from(SHARED.to_bits() + (number - 1) % 99);
        for port in [7000, 8000].map(|port| port + u16::from(host)) {
            let out = n.one(0, 1, udp((ip(0, host), port), (FAR, 8000)));
            assert_eq!((out.src(), out.ports()), (right, (port, 8000)), "host {host}");
        }
    }
    n.close();
}

/// The rule would put all hosts of a network on few addresses if their number is even.
#[test]
fn hosts_are_spread_over_sixteen_addresses() {
    let mut n = Nat::of(1);
    n.lab.ok("nat44 add address 192.0.2.1 del\nnat44 add address 192.0.2.0 - 192.0.2.15");
    let mut counts = [0; 16];
    for host in 2..250 {
        let mut of = |port| n.one(0, 1, udp((ip(0, host), port), (FAR, 53))).src().octets()[3];
        let first = of(1);
        assert_eq!(of(2), first, "a host keeps its address");
        counts[usize::from(first)] += 1;
    }
    assert!(counts.iter().all(|n| (4..40).contains(n)), "{counts:?}");
    n.close();
}

#[test]
fn a_free_port_is_kept() {
    let mut n = Nat::of(1);
    n.lab.ok("nat44 add static mapping tcp local 10.0.0.9 80 external 192.0.2.1 6000");
    let mut port = |packet: Packet| n.one(0, 1, packet).ports().0;
    assert_eq!(port(tcp((ip(0, 2), 5000), (FAR, 80), SYN)), 5000);
    assert_eq!(port(udp((ip(0, 2), 5000), (FAR, 53))), 5000);
    assert_eq!(port(echo(ip(0, 2), FAR, 5000)), 5000);
    // Ports in use by another host, by another session of this one, by a mapping, or never
    // assigned.
    for packet in [
        tcp((ip(0, 3), 5000), (FAR, 80), SYN),
        tcp((ip(0, 2), 5000), (FAR, 81), SYN),
        tcp((ip(0, 2), 6000), (FAR, 80), SYN),
        tcp((ip(0, 2), 80), (FAR, 80), SYN),
    ] {
        let own = packet.clone().build();
        let own = u16::from_be_bytes([own[20], own[21]]);
        let given = port(packet);
        assert!(given != own && given >= 1024, "{own} became {given}");
    }
    n.lab.ok("nat addr-port-assignment-alg port-range 40000 - 49999");
    n.await_no_sessions();
    assert_eq!(n.one(0, 1, udp((ip(0, 2), 45_000), (FAR, 53))).ports().0, 45_000);
    assert!((40_000..50_000).contains(&n.one(0, 1, udp((ip(0, 2), 5000), (FAR, 53))).ports().0));
    n.close();
}

/// An answer whose question went another way: nothing else is behind the address.
#[test]
fn echo_replies_to_a_whole_address_are_translated() {
    let mut n = Nat::of(1);
    n.lab.ok("nat44 add static mapping local 10.0.0.2 external 192.0.2.9\n\
              nat44 add static mapping icmp local 10.0.0.3 7 external 192.0.2.1 7");
    let whole = Ipv4Addr::new(192, 0, 2, 9);
    let reply = |to, id| Packet::new().ipv4(FAR, to).icmp_echo_reply(id, 1).payload_len(24);
    let back = n.one(1, 0, reply(whole, 6305));
    assert_eq!((back.dst(), back.ports().0), (ip(0, 2), 6305));
    let out = n.one(0, 1, echo(ip(0, 2), FAR, 6305));
    assert_eq!((out.src(), out.ports().0), (whole, 6305));
    let reply_out = Packet::new().ipv4(ip(0, 2), FAR).icmp_echo_reply(99, 1).payload_len(24);
    assert_eq!(n.one(0, 1, reply_out).src(), whole);
    // One identifier of a shared address has no such host, nor has an unknown one.
    assert!(n.pass(1, reply(SHARED, 7)).is_empty());
    assert!(n.pass(1, reply(SHARED, 8)).is_empty());
    n.close();
}

/// The pieces of a datagram, the last one first.
fn pieces(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), id: u16) -> Vec<Vec<u8>> {
    let whole = udp(from, to).payload_len(40).no_checksum().build();
    let cut = |offset: usize, len: usize, more: bool| {
        let mut p = whole[..20].to_vec();
        p.extend(&whole[20 + offset..20 + offset + len]);
        let total = (p.len() as u16).to_be_bytes();
        p[2..4].copy_from_slice(&total);
        p[4..6].copy_from_slice(&id.to_be_bytes());
        let field = (offset / 8) as u16 | if more { 0x2000 } else { 0 };
        p[6..8].copy_from_slice(&field.to_be_bytes());
        p[10..12].fill(0);
        let sum = thalweg_wire::checksum::checksum(&p[..20]);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p
    };
    vec![cut(24, 24, false), cut(0, 24, true)]
}

/// The sources of what arrives on a port.
fn sources(n: &mut Nat, from: u8, to: u8, packets: Vec<Vec<u8>>) -> Vec<Ipv4Addr> {
    let out = n.pass_all(from, packets);
    assert!(out.iter().all(|o| o.port == to), "{out:02x?}");
    out.iter().map(|o| o.src()).collect()
}

#[test]
fn fragments_are_forwarded_or_translated_as_a_whole() {
    let mut n = Nat::of(1);
    let (near, far) = ((ip(0, 2), 5000), (FAR, 53));
    // Forwarding, and no pool: as they are.
    n.lab.ok("nat44 add address 192.0.2.1 del\nnat44 forwarding enable");
    for (id, mut packets) in [(1, pieces(near, far, 1)), (2, pieces(near, far, 2))] {
        if id == 2 {
            packets.reverse();
        }
        assert_eq!(sources(&mut n, 0, 1, packets), [ip(0, 2); 2], "{id}");
    }
    // Packets come straight from outside, and the answers.
    assert_eq!(sources(&mut n, 1, 0, pieces((FAR, 54), near, 3)), [FAR; 2]);
    n.lab.ok("nat44 add address 192.0.2.1");
    assert_eq!(sources(&mut n, 0, 1, pieces(near, (FAR, 54), 4)), [ip(0, 2); 2]);
    // The same holds with a pool, until forwarding ends.
    assert_eq!(sources(&mut n, 0, 1, pieces(near, far, 5)), [ip(0, 2); 2]);
    n.lab.ok("nat44 forwarding disable");
    assert_eq!(sources(&mut n, 0, 1, pieces(near, far, 8)), [SHARED; 2]);
    // Both roles on both sides, and translation on output behind it: once.
    n.lab.ok("set interface nat44 in test0 out test1 del\n\
              set interface nat44 in test0 out test0\n\
              set interface nat44 out test1 output-feature");
    n.lab.ok("nat44 add static mapping udp local 10.0.0.2 53 external 192.0.2.1 5353");
    assert_eq!(sources(&mut n, 1, 0, pieces((FAR, 9), (SHARED, 5353), 6)), [FAR; 2]);
    assert_eq!(sources(&mut n, 0, 1, pieces((ip(0, 2), 53), (FAR, 9), 7)), [SHARED; 2]);
    n.close();
}

/// A host that calls itself by external address, through one interface that is both.
#[test]
fn one_interface_is_inside_and_outside() {
    let mut n = Nat::of(1);
    let twice = Ipv4Addr::new(10, 0, 1, 3);
    n.lab.ok("set interface nat44 in test0 out test1 del\n\
              set interface nat44 in test0 out test0\n\
              nat44 add address 10.0.1.3 twice-nat\n\
              nat44 add static mapping tcp local 10.0.0.2 8080 external 192.0.2.1 80 self-twice-nat");
    let (host, name) = (ip(0, 2), (SHARED, 80));
    let out = n.one(0, 0, tcp((host, 4567), name, SYN));
    assert_eq!((out.src(), out.dst(), out.ports().1), (twice, host, 8080));
    let from = (twice, out.ports().0);
    assert_ne!(from.1, 4567);
    for flags in [SYN | ACK, ACK, ACK] {
        let back = n.one(0, 0, tcp((host, 8080), from, flags));
        assert_eq!((back.src(), back.dst(), back.ports()), (SHARED, host, (80, 4567)));
        let more = n.one(0, 0, tcp((host, 4567), name, ACK));
        assert_eq!((more.src(), more.ports()), (twice, (from.1, 8080)));
    }
    // Another host is not translated, the first one's answers to it are.
    n.know(3..4);
    assert_eq!(n.one(0, 0, tcp((ip(0, 3), 4567), name, SYN)).src(), ip(0, 3));
    let back = n.one(0, 0, tcp((host, 8080), (ip(0, 3), 4567), SYN | ACK));
    assert_eq!((back.src(), back.dst()), (SHARED, ip(0, 3)));
    assert_eq!(n.sessions().len(), 2);
    // The TTL expires here: the sender learns of it.
    let out = n.pass(0, udp((host, 1), (FAR, 2)).ttl(1));
    assert_eq!((out.len(), out[0].dst(), out[0].view().payload()[0]), (1, host, 11));
    n.close();
}

/// An outside interface that lost its address, with translation on output: nothing leaves
/// untranslated, forwarding or not.
#[test]
fn a_pool_without_an_address_is_still_a_pool() {
    let mut n = Nat::of(1);
    n.lab.ok("nat44 add address 192.0.2.1 del\n\
              set interface nat44 in test0 out test1 del\n\
              set interface nat44 out test1 output-feature\n\
              nat44 add interface address test2\nnat44 forwarding enable");
    let send = |n: &mut Nat| {
        let out = n.pass(0, udp((ip(0, 2), 5000), (FAR, 53)));
        out.iter().filter(|o| o.port == 1).map(|o| o.src()).collect::<Vec<_>>()
    };
    assert_eq!(send(&mut n), [ip(2, 1)]);
    n.lab.ok("set interface ip address del test2 all");
    assert!(send(&mut n).is_empty());
    n.lab.ok("nat44 add interface address test2 del");
    assert_eq!(send(&mut n), [ip(0, 2)]);
    n.lab.ok("nat44 forwarding disable");
    assert!(send(&mut n).is_empty());
    n.close();
}

/// Outsiders whose packets are forwarded do not displace sessions of inside hosts.
#[test]
fn a_full_table_keeps_what_hosts_opened() {
    let mut n = Nat::with(1, "nat44 plugin enable sessions 8");
    (0..6).for_each(|i| drop(n.one(0, 1, udp((ip(0, 2), 5000 + i), (FAR, 53)))));
    n.lab.ok("nat44 forwarding enable");
    for i in 0..20 {
        assert_eq!(n.one(1, 0, udp((FAR, 6000 + i), (ip(0, 2), 9))).src(), FAR);
    }
    let direct = n.sessions().iter().filter(|s| s.is_direct()).count();
    assert_eq!((n.sessions().len(), direct), (8, 2));
    let text = n.lab.cli("show nat44 sessions");
    assert!(text.contains("forwarded from outside, not translated"), "{text}");
    n.close();
}

#[test]
fn packets_are_counted_by_interface() {
    let mut n = Nat::of(1);
    let counters: Arc<Counters> = n.lab.c.shared();
    let read = |n: &Nat, port: u8| -> Vec<(&str, u64)> {
        let all = counters.read(0, n.lab.sw_if(port));
        NAMES.into_iter().zip(all).filter(|(_, n)| *n > 0).collect()
    };
    let (near, far) = ((ip(0, 2), 5000), (FAR, 80));
    // Two of the first flow come together: neither had a session when the frame came.
    let syn = tcp(near, far, SYN).build();
    let gre = |a, b| Packet::new().ipv4(a, b).gre().payload_len(20);
    let first = [syn.clone(), syn, udp(near, far).build(), echo(near.0, FAR, 5000).build()];
    let first = first.into_iter().chain([gre(near.0, FAR).build()]).collect();
    assert_eq!(n.pass_all(0, first).len(), 5);
    let slow = |name: &'static str, n| (name, n);
    assert_eq!(
        read(&n, 0),
        [
            slow("in2out/slowpath/tcp", 2),
            slow("in2out/slowpath/udp", 1),
            slow("in2out/slowpath/icmp", 1),
            slow("in2out/slowpath/other", 1)
        ]
    );
    // The answers, a frame of several flows and one of a single one.
    let reply = Packet::new().ipv4(FAR, SHARED).icmp_echo_reply(5000, 1).payload_len(24);
    let answers = [
        tcp(far, (SHARED, 5000), SYN | ACK).build(),
        udp(far, (SHARED, 5000)).build(),
        reply.build(),
        gre(FAR, SHARED).build(),
    ];
    assert_eq!(n.pass_all(1, answers.to_vec()).len(), 4);
    assert_eq!(n.pass_all(1, vec![udp(far, (SHARED, 5000)).build(); 7]).len(), 7);
    // Strangers.
    assert!(n.pass_all(1, vec![udp((FAR, 81), (SHARED, 5000)).build(); 3]).is_empty());
    assert_eq!(
        read(&n, 1),
        [
            ("out2in/fastpath/tcp", 1),
            ("out2in/fastpath/udp", 8),
            ("out2in/fastpath/icmp", 1),
            ("out2in/fastpath/other", 1),
            ("out2in/slowpath/drops", 3)
        ]
    );
    // The interface of output decides, with translation there.
    n.lab.ok("set interface nat44 in test0 out test1 del\n\
              set interface nat44 out test1 output-feature");
    let more = [udp(near, far).build(), udp((ip(2, 2), 5001), far).build()];
    n.pass_all(0, more[..1].to_vec());
    n.pass_all(2, more[1..].to_vec());
    let ours = ["in2out/fastpath/udp", "in2out/slowpath/udp"];
    let ours: Vec<_> = read(&n, 1).into_iter().filter(|(name, _)| ours.contains(name)).collect();
    assert_eq!(ours, [("in2out/fastpath/udp", 1), ("in2out/slowpath/udp", 1)]);
    n.close();
}

/// A host behind an outside interface, whose packets are translated where they leave: the second
/// ones find the session when they come.
#[test]
fn an_outside_interface_and_translation_on_output() {
    for workers in [1, 2] {
        let mut n = Nat::of(workers);
        n.lab.ok("set interface nat44 in test0 out test1 del\n\
                  nat44 forwarding enable\n\
                  set interface nat44 out test0\n\
                  set interface nat44 out test1 output-feature");
        let (near, far) = ((ip(0, 2), 6303), (FAR, 20));
        let reply = || Packet::new().ipv4(FAR, SHARED).icmp_echo_reply(6305, 1).payload_len(24);
        for ttl in [64, 64, 2] {
            for packet in [tcp(near, far, SYN), udp(near, far), echo(near.0, FAR, 6305)] {
                let out = n.one(0, 1, packet.ttl(ttl));
                assert_eq!((out.src(), out.dst(), out.view().ttl()), (SHARED, FAR, ttl - 1));
            }
            for packet in [tcp(far, (SHARED, 6303), SYN | ACK), udp(far, (SHARED, 6303)), reply()] {
                let back = n.one(1, 0, packet.ttl(ttl));
                assert_eq!((back.src(), back.dst(), back.view().ttl()), (FAR, near.0, ttl - 1));
            }
        }
        assert_eq!(n.sessions().len(), 3);
        // The TTL expires here: the error is about what the host sent.
        for packet in [udp(near, far).ttl(1), tcp(near, far, ACK).ttl(1)] {
            let sent = packet.build();
            let out = n.pass_all(0, vec![sent.clone()]);
            assert_eq!((out.len(), out[0].port, out[0].dst()), (1, 0, near.0), "{out:02x?}");
            assert_eq!(out[0].view().payload()[0], 11);
            assert_eq!(out[0].view().payload()[20..32], sent[12..24], "addresses and ports");
        }
        n.close();
    }
}
