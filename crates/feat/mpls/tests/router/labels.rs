//! Labels that are swapped, pushed and popped.

use crate::lab::{FAR, Left, Mpls, framed, inner, labelled, left, router, udp};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip4::ip;
use thalweg_fib::rib::WatchedRoutes;
use thalweg_wire::build::Packet;
use thalweg_wire::checksum::verify;
use thalweg_wire::icmpv4::IcmpView;
use thalweg_wire::ipv4::{self, Ipv4View};
use thalweg_wire::mpls::{Entry, Label};

#[test]
fn article_2_swaps_labels() {
    let mut lab = router();
    lab.ok("mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17");
    let left = lab.one(0, &labelled(&[16], 64));
    let want = Left { by: 1, to: host_mac(1, 2), labels: vec![(17, 0, true, 63)], rest: inner(33) };
    assert_eq!(left, want);
    let text = lab.cli("show mpls fib");
    assert!(text.contains("16:eos/21 fib:0") && text.contains("labels:[[17 pipe ttl:0 exp:0]]"));
    assert!(text.contains("ip4-explicit-null:neos/21"), "{text}");
    lab.lost(0, &labelled(&[16, 18], 64), "mpls-lookup", "mpls label is not bound");
    lab.ok("mpls local-label del 16 eos");
    lab.lost(0, &labelled(&[16], 64), "mpls-lookup", "mpls label is not bound");
    lab.ok("set interface mpls test0 disable");
    let why = "mpls is not enabled on the interface";
    lab.lost(0, &labelled(&[16], 64), "mpls-not-enabled", why);
    lab.close();
}

#[test]
fn labels_are_pushed_on_ip_packets() {
    let mut lab = router();
    for (stack, want) in [
        ("17", vec![(17, 0, true, 64)]),
        ("18 17", vec![(18, 0, false, 64), (17, 0, true, 64)]),
        ("implicit-null", vec![]),
        ("3 17", vec![(17, 0, true, 64)]),
        ("20 19 18 17", (17..=20).rev().map(|l| (l, 0, l == 17, 64)).collect()),
    ] {
        lab.ok(&format!("ip route replace 16.0.0.0/24 via 10.0.1.2 test1 out-labels {stack}"));
        let left = lab.one(0, &udp(64));
        let want = Left { by: 1, to: host_mac(1, 2), labels: want, rest: inner(63) };
        assert_eq!(left, want, "{stack}");
    }
    let eleven: Vec<String> = (100..112).map(|l| l.to_string()).collect();
    let command =
        format!("ip route replace 16.0.0.0/24 via 10.0.1.2 test1 out-labels {}", eleven.join(" "));
    lab.ok(&command);
    assert_eq!(lab.one(0, &udp(64)).labels.len(), 12);
    // Labels of a recursive next hop come behind those of the route to it.
    lab.ok("ip route add 1.1.1.1/32 via 10.0.2.3 test2 out-labels 55");
    lab.ok("ip route replace 16.0.0.0/24 via 1.1.1.1 out-labels 100");
    let left = lab.one(0, &udp(64));
    assert_eq!((left.by, left.to), (2, host_mac(2, 3)));
    assert_eq!(left.labels, [(55, 0, false, 64), (100, 0, true, 64)]);
    lab.ok("ip route replace 1.1.1.1/32 via 10.0.1.3 test1 out-labels 56");
    assert_eq!(lab.one(0, &udp(64)).labels[0].0, 56);
    // The same from a table of its own.
    lab.ok("ip table add 10");
    lab.ok("set interface ip address del test0 10.0.0.1/24");
    lab.ok("set interface ip table test0 10");
    lab.ok("set interface ip address test0 10.0.0.1/24");
    lab.ok("ip route add 16.0.0.0/24 table 10 via 1.1.1.1 next-hop-table 0 out-labels 101");
    assert_eq!(lab.one(0, &udp(64)).labels, [(56, 0, false, 64), (101, 0, true, 64)]);
    lab.close();
}

#[test]
fn labels_are_popped() {
    let mut lab = router();
    // The packet goes on to a neighbour.
    lab.ok("mpls local-label add 20 eos via 10.0.1.2 test1");
    let left = lab.one(0, &labelled(&[20], 64));
    let want = Left { by: 1, to: host_mac(1, 2), labels: vec![], rest: inner(32) };
    assert_eq!(left, want);
    // One hop before the end.
    lab.ok("mpls local-label add 21 non-eos via 10.0.1.2 test1 out-labels implicit-null");
    let left = lab.one(0, &labelled(&[21, 77], 64));
    assert_eq!(left.labels, [(77, 0, true, 64)]);
    // Labels look up in tables.
    lab.ok("ip table add 10");
    lab.ok("ip route add 16.0.0.0/24 table 10 via 10.0.2.2 test2");
    lab.ok("mpls local-label add 22 eos via ip4-lookup-in-table 10");
    let left = lab.one(0, &labelled(&[22], 64));
    assert_eq!((left.by, left.rest), (2, inner(32)));
    lab.ok("ip route add 16.0.0.0/24 via 10.0.1.3 test1");
    let left = lab.one(0, &labelled(&[0], 64));
    assert_eq!((left.by, left.to), (1, host_mac(1, 3)));
    // Explicit null above others, and a label that leads to the next one.
    lab.ok("mpls table add 5");
    lab.ok("mpls local-label add 30 eos table 5 via 10.0.2.3 test2 out-labels 31");
    lab.ok("mpls local-label add 23 non-eos via mpls-lookup-in-table 5");
    assert_eq!(lab.one(0, &labelled(&[23, 30], 64)).labels, [(31, 0, true, 63)]);
    assert_eq!(lab.one(0, &labelled(&[0, 2, 23, 30], 64)).labels, [(31, 0, true, 63)]);
    lab.ok("mpls local-label add 24 eos via rx-ip4 test2");
    assert_eq!(lab.one(0, &labelled(&[24], 64)).to, host_mac(1, 3));
    lab.up(2, false);
    let why = "interface that is to receive the packet is down";
    lab.lost(0, &labelled(&[24], 64), "interface-rx-dpo-ip4", why);
    lab.up(2, true);
    // The packet is treated like all that the interface receives: by its features, such as NAT, and
    // without IPv4 not at all.
    lab.ok("set interface ip address del test2 all");
    lab.lost(0, &labelled(&[24], 64), "ip4-not-enabled", "ip4 is not enabled on the interface");
    // More than one: the last is swapped.
    lab.ok("mpls local-label add 25 eos via 10.0.1.2 test1 out-labels 40 41");
    assert_eq!(lab.one(0, &labelled(&[25], 9)).labels, [(40, 0, false, 64), (41, 0, true, 8)]);
    lab.close();
}

#[test]
fn what_cannot_be_is_refused() {
    let mut lab = router();
    for (command, why) in [
        (
            "mpls local-label add 16 eos table 9 via 10.0.1.2 test1",
            "MPLS table-id 9 does not exist",
        ),
        ("mpls local-label add 16 eos", "no paths"),
        ("mpls local-label add eos via drop", "local-label required"),
        ("mpls local-label add 16 eos via mpls-lookup-in-table 0", "non-eos"),
        ("mpls local-label add 16 via ip4-lookup-in-table 0", "no packet follows"),
        ("mpls local-label add 16 eos via ip4-lookup-in-table 9", "no IPv4 table 9"),
        ("mpls local-label add 16 via l2-input-on test1", "no packet follows"),
        ("mpls local-label add 16 10.0.0.0/24 via drop", "no paths of its own"),
        ("mpls local-label add 16 10.0.0.0/24 table 9", "no IPv4 table 9"),
        ("mpls local-label add 0 10.0.0.0/24", "is bound to what every table has it for"),
        ("mpls local-label del 16 10.0.0.0/24", "is not bound to 10.0.0.0/24"),
        ("mpls tunnel add via 10.0.1.2 test1", "No Output Labels"),
        ("mpls tunnel add", "no paths"),
        (
            "mpls tunnel add vai 10.0.1.2",
            "bad interface `vai' (argument 2): expected an interface, or",
        ),
        ("mpls local-label add 16 via 10.0.1.300", "bad next hop `10.0.1.300' (argument 4)"),
        ("mpls tunnel add control-word via 10.0.1.2 test1 out-labels 16", "l2-only control-word"),
        ("mpls tunnel del test1", "`test1' is no MPLS tunnel"),
        ("mpls tunnel del mpls-tunnel7", "bad interface `mpls-tunnel7'"),
        ("mpls local-label del 16 eos", "no label 16:eos"),
        ("mpls table del 9", "MPLS table-id 9 does not exist"),
        ("mpls table del 0", "interfaces use MPLS table 0"),
        ("ip route add 1.0.0.0/8 via 10.0.1.2 test1 out-labels 1048576", "up to 1048575"),
    ] {
        let text = lab.cli(command);
        assert!(text.contains(why), "{command}: {text}");
    }
    lab.close();
}

#[test]
fn packets_of_no_use_are_counted() {
    let mut lab = router();
    lab.ok("mpls local-label add 16 non-eos via mpls-lookup-in-table 0");
    lab.ok("mpls local-label add 17 eos via ip4-lookup-in-table 0");
    lab.ok("mpls local-label add 18 eos via drop");
    lab.lost(0, &labelled(&[17], 0), "mpls-input", "mpls ttl expired");
    lab.lost(0, &labelled(&[1], 9), "mpls-lookup", "mpls packet to the router itself");
    lab.lost(0, &labelled(&[18], 9), "mpls-lookup", "mpls label is bound to a drop");
    lab.lost(0, &labelled(&[16; 20], 9), "mpls-lookup", "too many mpls look-ups of one packet");
    lab.lost(0, &labelled(&[4000], 9), "mpls-lookup", "mpls label is not bound");
    // No packet behind the bottom; a stack without one.
    let (nothing, open) =
        (Packet::new().mpls(17).payload(&[0; 60]), Entry::new(Label(16), 0, false, 9));
    lab.lost(0, &nothing, "lookup-ip4-dst", "no ip4 packet after the last mpls label");
    let open = Packet::new().payload(&open.0.to_be_bytes());
    lab.lost(0, &open, "mpls-lookup", "mpls packet shorter than a label");
    lab.lost(0, &Packet::new().payload(&[0, 1]), "mpls-input", "mpls packet shorter than a label");
    let wrong = Packet::new().mpls(17).payload(&[0x45; 60]);
    lab.lost(0, &wrong, "lookup-ip4-dst", "bad ip4 header after the last mpls label");
    // Packets refused without labels are not forwarded behind them, either.
    for (src, dst) in [
        ([0, 0, 0, 0], [10, 0, 1, 2]),
        ([127, 0, 0, 1], [10, 0, 1, 2]),
        ([224, 0, 0, 5], [10, 0, 1, 2]),
        ([255, 255, 255, 255], [10, 0, 1, 2]),
        ([10, 0, 0, 2], [127, 0, 0, 1]),
        ([10, 0, 0, 2], [0, 0, 0, 1]),
    ] {
        let packet = Packet::new().mpls(17).ipv4(src.into(), dst.into()).udp(1, 2);
        lab.lost(0, &packet, "lookup-ip4-dst", "bad ip4 header after the last mpls label");
    }
    // Twenty labels are swapped as one is.
    lab.ok("mpls local-label add 19 non-eos via 10.0.1.2 test1 out-labels 99");
    assert_eq!(lab.one(0, &labelled(&[19; 20], 9)).labels.len(), 20);
    lab.close();
}

/// An ICMP error about a packet, with the label stack in it.
fn error(packet: &[u8], dst: Ipv4Addr, kind: (u8, u8)) -> Vec<u8> {
    let outer = ipv4::check(packet).expect("a sound header");
    assert_eq!((outer.src(), outer.dst(), outer.protocol()), (ip(0, 1), dst, 1));
    let icmp = IcmpView::parse(outer.payload()).expect("icmp");
    assert!(icmp.checksum_ok());
    assert_eq!((icmp.kind(), icmp.code()), kind);
    assert_eq!(outer.payload()[5], 32, "words of the packet");
    let extension = &icmp.payload()[128..];
    assert!(verify(extension));
    assert_eq!(extension[6..8], [1, 1]);
    extension[8..].to_vec()
}

#[test]
fn a_ttl_that_ends_is_answered_with_the_stack() {
    let mut lab = router();
    lab.ok("mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17");
    lab.ok("mpls local-label add 16 non-eos via 10.0.1.2 test1 out-labels 17");
    let sent = lab.forward(0, &labelled(&[16], 1), 1);
    assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
    let answer = left(&sent[0]);
    assert_eq!((answer.by, answer.to, answer.labels.len()), (0, host_mac(0, 2), 0));
    let stack = error(&answer.rest, ip(0, 2), (11, 0));
    assert_eq!(stack, Entry::new(Label(16), 0, true, 1).0.to_be_bytes());
    // No router here knows the sender, but the one at the end of the path does.
    let far = Ipv4Addr::new(99, 0, 0, 1);
    let foreign = Packet::new().mpls(16).ttl(1).mpls(44).ttl(7).ipv4(far, FAR).udp(1, 2);
    let sent = lab.forward(0, &foreign, 1);
    assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
    let along = left(&sent[0]);
    assert_eq!((along.by, along.to), (1, host_mac(1, 2)));
    assert_eq!(along.labels, [(17, 0, false, 254), (44, 0, true, 255)]);
    assert_eq!(error(&along.rest, far, (11, 0)).len(), 8);
    assert_eq!(lab.count("mpls-icmp-error", "icmp errors sent along the labels of the packet"), 1);
    lab.close();
}

#[test]
fn long_packets_are_fragmented_or_answered() {
    let mut lab = router();
    lab.ok("mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17");
    lab.ok("ip route add 16.0.0.0/24 via 10.0.1.2 test1 out-labels 18 17");
    lab.ok("set interface mtu mpls 500 test1");
    let long = |p: Packet| p.ipv4(ip(0, 2), FAR).udp(1, 2).payload(&[5; 1000]);
    for (packet, labels, room) in
        [(long(Packet::new().mpls(16)), 1, 496), (long(Packet::new()), 2, 492)]
    {
        let sent = lab.forward(0, &packet, 1);
        assert_eq!(sent.len(), 3, "{}", lab.cli("show errors"));
        let mut data = Vec::new();
        for frame in &sent {
            let piece = left(frame);
            assert_eq!((piece.by, piece.labels.len()), (1, labels));
            assert!(piece.rest.len() <= room);
            let ip = ipv4::check(&piece.rest).expect("a sound header");
            assert_eq!(ip.fragment_offset(), data.len());
            data.extend_from_slice(ip.payload());
        }
        assert_eq!(data.len(), 1008);
    }
    let mut frame = labelled(&[16], 64).payload(&[5; 1000]).build();
    let header = &mut frame[4..24];
    header[6] = 0x40;
    header[10..12].fill(0);
    let sum = thalweg_wire::checksum::checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let sent = lab.forward(0, &Packet::new().payload(&frame), 1);
    assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
    let answer = left(&sent[0]);
    assert_eq!((answer.by, answer.labels.len()), (0, 0));
    error(&answer.rest, ip(0, 2), (3, 4));
    let icmp = Ipv4View::parse(&answer.rest).expect("ip").payload().to_vec();
    assert_eq!(u16::from_be_bytes([icmp[6], icmp[7]]), 496);
    lab.close();
}

#[test]
fn flows_are_spread_over_paths() {
    let mut lab = router();
    lab.ok("mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17 via 10.0.2.2 test2 out-labels 18");
    lab.ok("mpls local-label add 16 eos via 10.0.1.3 test1");
    let mut seen = BTreeMap::new();
    for port in 0..200 {
        let packet = Packet::new().mpls(16).ipv4(ip(0, 2), FAR).udp(port, 53).payload(&[7; 40]);
        let sent = lab.forward(0, &packet, 2);
        assert_eq!(sent.len(), 2, "{}", lab.cli("show errors"));
        assert_eq!(sent[0], sent[1], "a flow keeps its path");
        let left = left(&sent[0]);
        let label = left.labels.first().map(|l| (l.0, l.3));
        *seen.entry((left.by, left.to.0[5], label)).or_insert(0) += 1;
    }
    let ways: Vec<_> = seen.keys().copied().collect();
    assert_eq!(ways, [(1, 2, Some((17, 63))), (1, 3, None), (2, 2, Some((18, 63)))]);
    assert!(seen.values().all(|n| *n > 20), "{seen:?}");
    // The others take over.
    lab.up(2, false);
    for port in 0..50 {
        let packet = Packet::new().mpls(16).ipv4(ip(0, 2), FAR).udp(port, 53).payload(&[7; 40]);
        assert_eq!(lab.forward(0, &packet, 1).len(), 1);
    }
    lab.close();
}

#[test]
fn packets_wait_for_their_neighbour() {
    let mut lab = router();
    lab.ok("mpls local-label add 16 eos via 10.0.1.77 test1 out-labels 17");
    lab.ok("ip route add 16.0.0.0/24 via 10.0.1.77 test1 out-labels 18");
    lab.deliver(0, vec![framed(0, &labelled(&[16], 64)), framed(0, &udp(64))]);
    lab.until("packets held", |lab| {
        lab.count("mpls-adj-incomplete", "mpls packets held for a neighbour") == 1
            && lab.count("ip4-arp", "packets held for ARP") == 1
    });
    lab.neighbor(1, ip(1, 77), host_mac(1, 77));
    let mut frames = Vec::new();
    lab.until("held packets", |lab| {
        frames.extend(lab.sent());
        frames.iter().filter(|(_, frame)| frame[12..14] == [0x88, 0x47]).count() == 2
    });
    assert_eq!(lab.one(0, &labelled(&[16], 64)).to, host_mac(1, 77));
    lab.close();
}

#[test]
fn a_deleted_interface_takes_its_labels_along() {
    let mut lab = router();
    lab.ok("mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17 via 10.0.2.2 test2 out-labels 18");
    lab.ok("mpls local-label add 17 eos via 10.0.1.2 test1 out-labels 17");
    let gone = lab.sw_if(1);
    thalweg_device::interface::delete(&mut lab.c, gone).expect("deleted");
    let text = lab.cli("show mpls fib");
    assert!(!text.contains("17:eos/21"), "{text}");
    let sent = lab.forward(0, &labelled(&[16], 64), 1);
    assert_eq!(left(&sent[0]).labels, [(18, 0, true, 63)]);
    lab.close();
}

/// The same packet with another type of service.
fn with_tos(packet: &Packet, at: usize, tos: u8) -> Packet {
    let mut bytes = packet.clone().build();
    let header = &mut bytes[at..at + 20];
    header[1] = tos;
    header[10..12].fill(0);
    let sum = thalweg_wire::checksum::checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    Packet::new().payload(&bytes)
}

#[test]
fn labels_may_have_a_ttl_and_a_class_of_their_own() {
    let mut lab = router();
    lab.ok("ip route add 16.0.0.0/24 via 10.0.1.2 test1 out-labels 18 ttl 9 exp 5 3 17 exp 1");
    assert_eq!(lab.one(0, &udp(50)).labels, [(18, 5, false, 9), (17, 1, true, 64)]);
    lab.ok("ip route add 1.1.1.1/32 via 10.0.2.3 test2 out-labels 55 ttl 200");
    lab.ok("ip route replace 16.0.0.0/24 via 1.1.1.1 out-labels 17 ttl 3");
    assert_eq!(lab.one(0, &udp(50)).labels, [(55, 0, false, 200), (17, 0, true, 3)]);
    // Labels are pushed before a label that is swapped.
    lab.ok("mpls local-label add 20 eos via 10.0.1.2 test1 out-labels 40 ttl 7 41");
    assert_eq!(lab.one(0, &labelled(&[20], 9)).labels, [(40, 0, false, 7), (41, 0, true, 8)]);
    let text = lab.cli("show mpls fib 20");
    assert!(text.contains("[40 pipe ttl:7 exp:0] [41 pipe ttl:0 exp:0]"), "{text}");
    for bad in ["17 ttl 0", "17 exp 8", "17 ttl 256", "17 ttl"] {
        let text = lab.cli(&format!("ip route add 17.0.0.0/8 via 10.0.1.2 test1 out-labels {bad}"));
        assert!(!text.is_empty(), "{bad}");
    }
    lab.close();
}

#[test]
fn labels_take_ttl_and_class_over_in_uniform_mode() {
    let mut lab = router();
    lab.ok("ip route add 16.0.0.0/24 via 10.0.1.2 test1 out-labels 18 17 uniform");
    let left = lab.one(0, &with_tos(&udp(50), 0, 0xb9));
    assert_eq!((left.by, left.to), (1, host_mac(1, 2)));
    assert_eq!(left.labels, [(18, 5, false, 49), (17, 5, true, 49)]);
    assert_eq!((left.rest[1], left.rest[8]), (0xb9, 49));
    let text = lab.cli("show ip fib 16.0.0.1");
    assert!(text.contains("[17 uniform ttl:0 exp:0]"), "{text}");
    // Labels that a swap pushes take TTL and class of the label below.
    lab.ok("mpls local-label add 20 eos via 10.0.1.2 test1 out-labels 40 41 uniform");
    let stack = Packet::new()
        .payload(&[&Entry::new(Label(20), 6, true, 9).0.to_be_bytes()[..], &inner(33)].concat());
    assert_eq!(lab.one(0, &stack).labels, [(40, 6, false, 8), (41, 6, true, 8)]);
    // The route is resolved by the tables of others.
    lab.ok("ip route add 1.1.1.1/32 via 10.0.2.3 test2 out-labels 55");
    lab.ok("ip route replace 16.0.0.0/24 via 1.1.1.1 out-labels 17 uniform");
    let left = lab.one(0, &with_tos(&udp(50), 0, 0x20));
    assert_eq!(left.labels, [(55, 1, false, 49), (17, 1, true, 49)]);
    lab.up(2, false);
    lab.lost(0, &udp(50), "ip4-lookup", "next-hop interface is down");
    lab.close();
}

#[test]
fn packets_take_ttl_and_class_over_in_uniform_mode() {
    let mut lab = router();
    lab.ok("mpls local-label add 20 eos via 10.0.1.2 test1 out-labels implicit-null uniform");
    lab.ok("mpls local-label add 21 eos via 10.0.1.2 test1");
    let stack = |label, ttl| {
        let entry = Entry::new(Label(label), 5, true, ttl).0.to_be_bytes();
        let packet = with_tos(&Packet::new().payload(&inner(33)), 0, 0x2b).build();
        Packet::new().payload(&[&entry[..], &packet].concat())
    };
    let uniform = lab.one(0, &stack(20, 9));
    assert_eq!((uniform.rest[1], uniform.rest[8]), (0xa3, 8));
    ipv4::check(&uniform.rest).expect("a sound header");
    let pipe = lab.one(0, &stack(21, 9));
    assert_eq!((pipe.rest[1], pipe.rest[8]), (0x2b, 32));
    // The TTL does not grow.
    assert_eq!(lab.one(0, &stack(20, 200)).rest[8], 32);
    let text = lab.cli("show mpls fib 20");
    assert!(text.contains("[implicit-null uniform ttl:0 exp:0]"), "{text}");
    lab.close();
}

#[test]
fn long_packets_of_uniform_paths_are_fragmented_or_answered() {
    let mut lab = router();
    lab.ok("ip route add 16.0.0.0/24 via 10.0.1.2 test1 out-labels 18 17 uniform");
    lab.ok("set interface mtu mpls 500 test1");
    let long = Packet::new().ipv4(ip(0, 2), FAR).udp(1, 2).payload(&[5; 1000]);
    let sent = lab.forward(0, &long, 1);
    assert_eq!(sent.len(), 3, "{}", lab.cli("show errors"));
    for frame in &sent {
        let piece = left(frame);
        assert_eq!((piece.labels.len(), piece.labels[0].3), (2, 63));
        assert!(piece.rest.len() <= 492);
    }
    let mut bytes = long.build();
    bytes[6] = 0x40;
    bytes[10..12].fill(0);
    let sum = thalweg_wire::checksum::checksum(&bytes[..20]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    let sent = lab.forward(0, &Packet::new().payload(&bytes), 1);
    assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
    let answer = left(&sent[0]);
    error(&answer.rest, ip(0, 2), (3, 4));
    assert_eq!(answer.rest[26..28], 492u16.to_be_bytes());
    lab.close();
}

/// Nobody hears of a route that no label follows any more.
#[test]
fn a_table_that_goes_follows_no_routes() {
    let mut lab = router();
    let events = Rc::new(Cell::new(0));
    let seen = events.clone();
    lab.c.subscribe(move |_, _: &WatchedRoutes| seen.set(seen.get() + 1));
    lab.ok("mpls table add 7");
    lab.ok("ip route add 16.0.0.0/24 via 10.0.2.2 test2");
    lab.ok("mpls local-label add 100 16.0.0.0/24 mpls-table 7");
    let changes = |lab: &mut thalweg_device::testing::Lab, n: u8| {
        events.set(0);
        lab.ok(&format!("ip route replace 16.0.0.0/24 via 10.0.{n}.2 test{n}"));
        lab.turn();
        events.get()
    };
    assert!(changes(&mut lab, 1) > 0);
    lab.ok("mpls table del 7");
    lab.turn();
    assert_eq!(changes(&mut lab, 2), 0);
    // Another one of its number follows them again.
    lab.ok("mpls table add 7\nmpls local-label add 100 16.0.0.0/24 mpls-table 7");
    assert!(changes(&mut lab, 1) > 0);
    lab.close();
}
