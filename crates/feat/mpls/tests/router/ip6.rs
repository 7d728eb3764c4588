//! IPv6 behind labels (RFC 4798, RFC 4659).

use crate::lab::{FAR, Left, Mpls, framed, left, router, router_with_ip6, udp};
use std::net::Ipv6Addr;
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip4::ip;
use thalweg_device::testing::ip6::ip as ip6;
use thalweg_wire::build::Packet;
use thalweg_wire::checksum::verify;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::mpls::{Entry, Label};

/// Far away.
const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1);

fn udp6(hops: u8) -> Packet {
    Packet::new().ipv6(ip6(0, 2), FAR6).ttl(hops).udp(1024, 53).payload(&[7; 100])
}

fn inner6(hops: u8) -> Vec<u8> {
    udp6(hops).build()
}

/// A labelled UDP packet; the outermost label first.
fn labelled6(labels: &[u32], ttl: u8) -> Packet {
    let stack = labels.iter().fold(Packet::new(), |p, label| p.mpls(*label).ttl(ttl));
    stack.ipv6(ip6(0, 2), FAR6).ttl(33).udp(1024, 53).payload(&[7; 100])
}

#[test]
fn labels_are_pushed_on_ip6_packets() {
    let mut lab = router_with_ip6();
    for (path, want) in [
        ("2001:db8:0:1::2 test1 out-labels 17", vec![(17, 0, true, 64)]),
        ("10.0.1.2 test1 out-labels 18 17", vec![(18, 0, false, 64), (17, 0, true, 64)]),
        ("10.0.1.2 test1 out-labels 18 2", vec![(18, 0, false, 64), (2, 0, true, 64)]),
        ("10.0.1.2 test1 out-labels 17 uniform", vec![(17, 0, true, 63)]),
        ("10.0.1.2 test1 out-labels implicit-null", vec![]),
    ] {
        lab.ok(&format!("ip route replace 2001:db8:f::/48 via {path}"));
        let left = lab.one(0, &udp6(64));
        let want = Left { by: 1, to: host_mac(1, 2), labels: want, rest: inner6(63) };
        assert_eq!(left, want, "{path}");
    }
    lab.close();
}

#[test]
fn a_core_of_ip4_carries_ip6() {
    let mut lab = router_with_ip6();
    // 6PE: the next hop is one of IPv4, to which labels lead.
    lab.ok("ip route add 1.1.1.1/32 via 10.0.2.3 test2 out-labels 55");
    lab.ok("ip route add 2001:db8:f::/48 via 1.1.1.1 out-labels 100");
    let sent = lab.one(0, &udp6(64));
    assert_eq!((sent.by, sent.to), (2, host_mac(2, 3)));
    assert_eq!(sent.labels, [(55, 0, false, 64), (100, 0, true, 64)]);
    assert_eq!(sent.rest, inner6(63));
    // The route follows the core's routes.
    lab.ok("ip route replace 1.1.1.1/32 via 10.0.1.3 test1 out-labels 56");
    assert_eq!(lab.one(0, &udp6(64)).labels[0].0, 56);
    lab.ok("ip route add 1.1.1.1/32 via 10.0.2.2 test2 out-labels 57");
    let ways: Vec<u32> = (0..60)
        .map(|port| {
            let packet = Packet::new().ipv6(ip6(0, 2), FAR6).udp(port, 53).payload(&[7; 40]);
            left(&lab.forward(0, &packet, 1)[0]).labels[0].0
        })
        .collect();
    assert!(ways.contains(&56) && ways.contains(&57), "{ways:?}");
    lab.up(2, false);
    assert_eq!(lab.one(0, &udp6(64)).labels[0].0, 56);
    // The end of the path is the next router: without a label of its own, the packet is one of IPv6
    // on the link, which knows the neighbour by its IPv4 address.
    lab.ok("ip route replace 1.1.1.1/32 via 10.0.1.3 test1 out-labels implicit-null");
    assert_eq!(lab.one(0, &udp6(64)).labels, [(100, 0, true, 64)]);
    lab.ok("ip route replace 2001:db8:f::/48 via 1.1.1.1");
    let plain = lab.one(0, &udp6(64));
    assert_eq!((plain.to, plain.labels.len(), plain.rest), (host_mac(1, 3), 0, inner6(63)));
    // Packets are dropped without a way through the core, and the route says why.
    lab.ok("ip route del 1.1.1.1/32");
    lab.lost(0, &udp6(64), "ip6-lookup", "next hop of the route leads nowhere");
    let text = lab.cli("show ip6 fib 2001:db8:f::1");
    assert!(text.contains("next hop 1.1.1.1 is not reachable in table 0"), "{text}");
    lab.ok("ip route add 1.1.1.1/32 via 10.0.1.2 test1");
    assert_eq!(lab.one(0, &udp6(64)).to, host_mac(1, 2));
    lab.ok("ip route del 2001:db8:f::/48 via 1.1.1.1");
    lab.lost(0, &udp6(64), "ip6-lookup", "no route");
    lab.close();
}

#[test]
fn vpns_of_ip6_have_tables_of_their_own() {
    let mut lab = router_with_ip6();
    lab.ok("ip6 table add 10");
    lab.ok(&format!("set interface ip address del test0 {}/64", ip6(0, 1)));
    lab.ok("set interface ip6 table test0 10");
    lab.ok(&format!("set interface ip address test0 {}/64", ip6(0, 1)));
    lab.ok("ip route add 1.1.1.1/32 via 10.0.1.3 test1 out-labels 56");
    lab.ok("ip route add 2001:db8:f::/48 table 10 via 1.1.1.1 out-labels 101");
    assert_eq!(lab.one(0, &udp6(64)).labels, [(56, 0, false, 64), (101, 0, true, 64)]);
    lab.ok("ip route replace 2001:db8:f::/48 table 10 via 1.1.1.1 next-hop-table 0 out-labels 102");
    assert_eq!(lab.one(0, &udp6(64)).labels, [(56, 0, false, 64), (102, 0, true, 64)]);
    // The way back: the inner label names the table.
    let host = Packet::new().mpls(77).ipv6(FAR6, ip6(0, 3)).ttl(9).udp(1, 2).payload(&[1; 60]);
    lab.ok("mpls local-label add 77 eos via ip6-lookup-in-table 10");
    let sent = lab.one(1, &host);
    assert_eq!((sent.by, sent.to, sent.rest[7]), (0, host_mac(0, 3), 8));
    lab.ok("mpls local-label replace 77 eos via rx-ip6 test0");
    assert_eq!(lab.one(1, &host).to, host_mac(0, 3));
    lab.lost(
        1,
        &Packet::new().mpls(77).ipv4(FAR, ip(0, 2)).udp(1, 2),
        "ip6-input",
        "ip6 length < 40 bytes",
    );
    // An error finds its way back by the table of the VPN, from an address of it.
    lab.ok("mpls local-label replace 77 eos via ip6-lookup-in-table 10");
    lab.ok("set ip neighbor test0 2001:db8:0:0::9 02:00:00:99:00:09");
    let ends = Packet::new().mpls(77).ipv6(FAR6, ip6(0, 3)).ttl(1).udp(1, 2).payload(&[1; 60]);
    let answers = lab.forward(1, &ends, 1);
    let answer = left(&answers[0]);
    assert_eq!((answer.by, &answer.labels[..]), (1, &[(56, 0, false, 64), (102, 0, true, 64)][..]));
    let error = Ipv6View::parse(&answer.rest).expect("a sound header");
    assert_eq!((error.src(), error.dst(), error.next_header()), (ip6(0, 1), FAR6, 58));
    lab.close();
}

#[test]
fn labels_are_popped_before_ip6_packets() {
    let mut lab = router_with_ip6();
    lab.ok("ip route add 2001:db8:f::/48 via 2001:db8:0:1::3 test1");
    // Explicit null.
    let left = lab.one(0, &labelled6(&[2], 64));
    let want = Left { by: 1, to: host_mac(1, 3), labels: vec![], rest: inner6(32) };
    assert_eq!(left, want);
    // Labels lead to a neighbour, and to one that routes lead to.
    lab.ok("mpls local-label add 20 eos via 2001:db8:0:2::2 test2");
    lab.ok("mpls local-label add 21 eos via 2001:db8:f::1");
    for (label, by, to) in [(20, 2, host_mac(2, 2)), (21, 1, host_mac(1, 3))] {
        let left = lab.one(0, &labelled6(&[label], 64));
        assert_eq!((left.by, left.to, left.rest), (by, to, inner6(32)), "{label}");
    }
    let why = "no ip6 packet after the last mpls label";
    let ip4 = Packet::new().mpls(20).payload(&udp(9).build());
    lab.lost(0, &ip4, "ip6-mpls-label-disposition-pipe", why);
    lab.ok("mpls local-label add 22 eos via 10.0.1.2 test1");
    let why = "no ip4 packet after the last mpls label";
    lab.lost(0, &labelled6(&[22], 64), "ip4-mpls-label-disposition-pipe", why);
    // Some paths pop the label, others swap it.
    lab.ok(
        "mpls local-label add 23 eos via 2001:db8:0:1::2 test1 via 10.0.2.2 test2 out-labels 44",
    );
    let mut seen = std::collections::BTreeSet::new();
    for port in 0..80 {
        let packet = Packet::new().mpls(23).ipv6(ip6(0, 2), FAR6).udp(port, 53).payload(&[7; 40]);
        let sent = lab.forward(0, &packet, 1);
        let sent = crate::lab::left(&sent[0]);
        seen.insert((sent.by, sent.labels.first().map(|l| l.0)));
    }
    assert_eq!(Vec::from_iter(seen), [(1, None), (2, Some(44))]);
    let text = lab.cli("mpls local-label add 20 eos via 10.0.2.2 test2");
    assert!(text.contains("next hops of both versions"), "{text}");
    let text = lab.cli("mpls local-label add 24 eos via ip6-lookup-in-table 9");
    assert!(text.contains("no IPv6 table 9"), "{text}");
    let text = lab.cli("mpls local-label add 24 eos via ip6-lookup-in-table 0 out-labels 5");
    assert!(text.contains("no labels are put before a packet that is looked up"), "{text}");
    let shown = lab.cli("show mpls fib 20");
    assert!(shown.contains("ipv6 via 2001:db8:0:2::2 test2"), "{shown}");
    lab.close();
}

#[test]
fn headers_behind_the_last_label_are_checked() {
    let mut lab = router_with_ip6();
    lab.ok("ip route add 2001:db8:f::/48 via 2001:db8:0:1::3 test1");
    let why = "bad ip6 header after the last mpls label";
    let with = |change: fn(&mut Vec<u8>)| {
        let mut bytes = inner6(33);
        change(&mut bytes);
        Packet::new()
            .payload(&[&Entry::new(Label(2), 0, true, 9).0.to_be_bytes()[..], &bytes].concat())
    };
    lab.lost(0, &with(|p| p[4] = 9), "lookup-ip6-dst-itf", why);
    lab.lost(0, &with(|p| p[8] = 0xff), "lookup-ip6-dst-itf", why);
    lab.lost(0, &with(|p| p[8..24].fill(0)), "lookup-ip6-dst-itf", why);
    lab.lost(0, &with(|p| p[24..40].fill(0)), "lookup-ip6-dst-itf", why);
    let short = Packet::new().mpls(2).payload(&[0x60; 39]);
    lab.lost(0, &short, "lookup-ip6-dst-itf", "no ip6 packet after the last mpls label");
    // Bytes after the packet belong to the link.
    let padded = with(|p| p.extend([0; 9]));
    assert_eq!(lab.one(0, &padded).rest, inner6(32));
    lab.close();
}

/// A hop limit of 255 proves nothing behind labels: neighbours are not learned by them, nor
/// answered.
#[test]
fn neighbour_discovery_does_not_come_behind_labels() {
    let mut lab = router_with_ip6();
    lab.ok("ip6 table add 10\nmpls local-label add 77 eos via ip6-lookup-in-table 0");
    let message = |kind: u8, target: Ipv6Addr, rest: u32| {
        let repr = thalweg_wire::icmpv6::Icmp6Repr { kind, code: 0, rest };
        let option = [if kind == 135 { 1 } else { 2 }, 1, 2, 0, 0, 0, 0, 0x66];
        (repr, [&target.octets()[..], &option].concat())
    };
    let known = ip6(1, 2);
    for (kind, target, rest, node, why) in [
        (136, known, 0x6000_0000, "icmp6-neighbor-advertisement", "neighbor advertisement"),
        (135, ip6(1, 1), 0, "icmp6-neighbor-solicitation", "neighbor solicitation"),
        (134, known, 0x4000_0708, "icmp6-router-advertisement", "router advertisement"),
        (133, known, 0, "icmp6-router-solicitation", "router solicitation"),
    ] {
        let (repr, payload) = message(kind, target, rest);
        let why = format!("{why} behind labels");
        for label in [2, 77] {
            let packet = Packet::new().mpls(label).ipv6(ip6(1, 3), ip6(1, 1)).ttl(255);
            lab.lost(1, &packet.icmp6(repr).payload(&payload), node, &why);
        }
    }
    lab.close();
}

#[test]
fn ip6_packets_take_ttl_and_class_over_in_uniform_mode() {
    let mut lab = router_with_ip6();
    lab.ok("ip route add 2001:db8:f::/48 via 2001:db8:0:1::2 test1");
    let uniform = "out-labels implicit-null uniform";
    lab.ok(&format!("mpls local-label add 20 eos via 2001:db8:0:1::2 test1 {uniform}"));
    lab.ok(&format!("mpls local-label add 21 eos via ip6-lookup-in-table 0 {uniform}"));
    lab.ok(&format!("mpls local-label add 22 eos via rx-ip6 test2 {uniform}"));
    for label in 20..=22 {
        let stack = |ttl| {
            let entry = Entry::new(Label(label), 5, true, ttl).0.to_be_bytes();
            let mut packet = inner6(33);
            // Traffic class 0x2b.
            (packet[0], packet[1]) = (0x62, packet[1] | 0xb0);
            Packet::new().payload(&[&entry[..], &packet].concat())
        };
        let left = lab.one(0, &stack(9));
        let class = left.rest[0] << 4 | left.rest[1] >> 4;
        assert_eq!((class, left.rest[7]), (0xa3, 8), "{label}");
        assert_eq!(lab.one(0, &stack(200)).rest[7], 32);
    }
    lab.ok(&format!("mpls local-label add 23 eos via ip4-lookup-in-table 0 {uniform}"));
    lab.ok("ip route add 16.0.0.0/24 via 10.0.1.2 test1");
    let ip4 = Packet::new().mpls(23).ttl(9).payload(&udp(33).build());
    let left = lab.one(0, &ip4);
    assert_eq!(left.rest[8], 8);
    thalweg_wire::ipv4::check(&left.rest).expect("a sound header");
    let text = lab.cli("show mpls fib 21");
    assert!(text.contains("lookup in ipv6-VRF:0 uniform"), "{text}");
    lab.close();
}

#[test]
fn labels_follow_routes_of_ip6() {
    let mut lab = router_with_ip6();
    lab.ok("mpls local-label add 50 2001:db8:f::/48");
    lab.settle();
    lab.lost(0, &labelled6(&[50], 64), "mpls-lookup", "mpls label is bound to a drop");
    lab.ok("ip route add 2001:db8:f::/48 via 2001:db8:0:1::2 test1");
    lab.settle();
    assert_eq!(lab.one(0, &labelled6(&[50], 64)).rest, inner6(32));
    lab.ok("ip route replace 2001:db8:f::/48 via 2001:db8:0:1::2 test1 out-labels 60");
    lab.settle();
    assert_eq!(lab.one(0, &labelled6(&[50], 64)).labels, [(60, 0, true, 63)]);
    lab.ok("ip route add 1.1.1.1/32 via 10.0.2.3 test2 out-labels 55");
    lab.settle();
    lab.ok("ip route replace 2001:db8:f::/48 via 1.1.1.1 out-labels 61");
    lab.settle();
    assert_eq!(lab.one(0, &labelled6(&[50], 64)).labels, [(55, 0, false, 64), (61, 0, true, 63)]);
    // A connected prefix: the host gets it.
    lab.ok("mpls local-label add 51 2001:db8:0:1::/64");
    lab.settle();
    let host = Packet::new().mpls(51).ipv6(FAR6, ip6(1, 2)).ttl(9).udp(1, 2).payload(&[1; 60]);
    assert_eq!(lab.one(0, &host).to, host_mac(1, 2));
    let text = lab.cli("show mpls fib 50");
    assert!(text.contains("bound to 2001:db8:f::/48 in ipv6-VRF:0"), "{text}");
    // The route is in a table of its own, whose own next hops are resolved there.
    lab.ok("ip6 table add 7");
    lab.settle();
    lab.ok("ip route add 2001:db8:f::/48 table 7 via 2001:db8:e::1");
    lab.settle();
    lab.ok("ip route add 2001:db8:e::/48 table 7 via 2001:db8:0:2::3 test2");
    lab.settle();
    lab.ok("mpls local-label add 52 2001:db8:f::/48 table 7");
    lab.settle();
    assert_eq!(lab.one(0, &labelled6(&[52], 64)).to, host_mac(2, 3));
    lab.ok("mpls local-label del 51 2001:db8:0:1::/64");
    lab.lost(0, &host, "mpls-lookup", "mpls label is not bound");
    lab.close();
}

/// An ICMPv6 error: what is in it, with its second word.
fn error(packet: &[u8], to: Ipv6Addr, kind: (u8, u8)) -> (u32, Vec<u8>) {
    let outer = Ipv6View::parse(packet).expect("a sound header");
    assert_eq!((outer.src(), outer.dst(), outer.hop_limit()), (ip6(0, 1), to, outer.hop_limit()));
    let icmp = Icmp6View::parse(outer.payload()).expect("icmp");
    assert!(icmp.checksum_ok(&outer.src(), &outer.dst()));
    assert_eq!((icmp.kind(), icmp.code()), kind);
    (icmp.rest(), outer.payload()[8..].to_vec())
}

#[test]
fn errors_about_ip6_packets_have_the_stack() {
    let mut lab = router_with_ip6();
    lab.ok("mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17");
    lab.ok("mpls local-label add 16 non-eos via 10.0.1.2 test1 out-labels 17");
    let sent = lab.forward(0, &labelled6(&[16], 1), 1);
    assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
    let answer = left(&sent[0]);
    assert_eq!((answer.by, answer.to, answer.labels.len()), (0, host_mac(0, 2), 0));
    let (rest, quoted) = error(&answer.rest, ip6(0, 2), (3, 0));
    assert_eq!(rest >> 24, 16, "words of the packet");
    assert_eq!(quoted[..128], inner6(33)[..128]);
    assert!(verify(&quoted[128..]));
    assert_eq!(quoted[136..], Entry::new(Label(16), 0, true, 1).0.to_be_bytes());
    // No router here knows the sender, but the one at the end of the path does.
    let far = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 1);
    let foreign = Packet::new().mpls(16).ttl(1).mpls(44).ttl(7).ipv6(far, FAR6).udp(1, 2);
    let sent = lab.forward(0, &foreign, 1);
    assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
    let along = left(&sent[0]);
    assert_eq!((along.by, along.to), (1, host_mac(1, 2)));
    assert_eq!(along.labels, [(17, 0, false, 254), (44, 0, true, 255)]);
    error(&along.rest, far, (3, 0));
    // Errors are not answered.
    let mut icmp = Packet::new().mpls(16).ttl(1).build();
    icmp.extend(&answer.rest);
    assert_eq!(lab.forward(0, &Packet::new().payload(&icmp), 1), []);
    lab.close();
}

#[test]
fn ip6_packets_too_long_for_the_labels_are_answered() {
    let mut lab = router_with_ip6();
    lab.ok("mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17");
    lab.ok("ip route add 2001:db8:f::/48 via 10.0.1.2 test1 out-labels 18 17");
    lab.ok("set interface mtu mpls 1400 test1");
    let long = |p: Packet| p.ipv6(ip6(0, 2), FAR6).udp(1, 2).payload(&[5; 1450 - 48]);
    for (packet, room) in [(long(Packet::new().mpls(16)), 1396), (long(Packet::new()), 1392)] {
        let sent = lab.forward(0, &packet, 1);
        assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
        let answer = left(&sent[0]);
        assert_eq!((answer.by, answer.to, answer.labels.len()), (0, host_mac(0, 2), 0));
        assert_eq!(answer.rest.len(), 1280);
        let (mtu, quoted) = error(&answer.rest, ip6(0, 2), (2, 0));
        assert_eq!((mtu, quoted[0]), (room, 0x60));
    }
    let fits =
        |p: Packet, size: usize| p.ipv6(ip6(0, 2), FAR6).udp(1, 2).payload(&vec![5; size - 48]);
    assert_eq!(lab.one(0, &fits(Packet::new().mpls(16), 1396)).labels.len(), 1);
    assert_eq!(lab.one(0, &fits(Packet::new(), 1392)).labels.len(), 2);
    // A tunnel says it as well.
    assert_eq!(lab.cli("mpls tunnel add via 10.0.1.2 test1 out-labels 33 34 35"), "mpls-tunnel0\n");
    lab.ok("set interface state mpls-tunnel0 up");
    lab.ok("ip route replace 2001:db8:f::/48 via mpls-tunnel0");
    assert_eq!(lab.one(0, &fits(Packet::new(), 1388)).labels.len(), 3);
    let sent = lab.forward(0, &long(Packet::new()), 1);
    assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
    assert_eq!(error(&left(&sent[0]).rest, ip6(0, 2), (2, 0)).0, 1388);
    lab.close();
}

#[test]
fn errors_behind_a_table_of_ip4_go_back_by_it() {
    let mut lab = router();
    lab.ok("ip table add 10");
    lab.ok("set interface ip address del test0 10.0.0.1/24");
    lab.ok("set interface ip table test0 10");
    lab.ok("set interface ip address test0 10.0.0.1/24");
    lab.neighbor(0, ip(0, 2), host_mac(0, 2));
    lab.ok("ip route add 9.0.0.0/8 table 10 via 10.0.1.2 next-hop-table 0 out-labels 101");
    lab.ok("mpls local-label add 77 eos via ip4-lookup-in-table 10");
    let there = "9.9.9.9".parse().expect("an address");
    let ends = Packet::new().mpls(77).ipv4(there, ip(0, 2)).ttl(1).udp(1, 2).payload(&[1; 60]);
    let long = Packet::new().mpls(77).ipv4(there, ip(0, 2)).udp(1, 2).payload(&[1; 700]).build();
    let mut long = long;
    long[10] |= 0x40;
    long[14..16].fill(0);
    let sum = thalweg_wire::checksum::checksum(&long[4..24]);
    long[14..16].copy_from_slice(&sum.to_be_bytes());
    lab.ok("set interface mtu ip4 500 test0");
    for (packet, kind) in [(ends, [11, 0]), (Packet::new().payload(&long), [3, 4])] {
        let sent = lab.forward(1, &packet, 1);
        assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
        let answer = left(&sent[0]);
        assert_eq!((answer.by, &answer.labels[..]), (1, &[(101, 0, true, 64)][..]));
        let error = thalweg_wire::ipv4::check(&answer.rest).expect("a sound header");
        assert_eq!((error.src(), error.dst()), (ip(0, 1), there));
        assert_eq!(error.payload()[..2], kind);
    }
    lab.close();
}

#[test]
fn next_hops_of_both_versions_do_not_lead_in_circles() {
    let mut lab = router_with_ip6();
    lab.ok("ip route add 1.1.1.1/32 via 2001:db8:e::1 out-labels 20");
    lab.ok("ip route add 2001:db8:e::/48 via 1.1.1.1 out-labels 21");
    lab.ok("ip route add 2001:db8:f::/48 via 1.1.1.1");
    lab.lost(0, &udp6(64), "ip6-lookup", "next hop of the route leads nowhere");
    // Both lead somewhere once one of them does.
    lab.ok("ip route replace 1.1.1.1/32 via 10.0.1.2 test1 out-labels 22");
    assert_eq!(lab.one(0, &udp6(64)).labels, [(22, 0, true, 64)]);
    lab.ok("ip route del 1.1.1.1/32");
    lab.ok("ip route del 2001:db8:e::/48");
    lab.ok("ip route del 2001:db8:f::/48");
    // Followed routes are let go.
    lab.settle();
    lab.close();
}

#[test]
fn ip6_packets_wait_for_a_neighbour_of_ip4() {
    let mut lab = router();
    lab.ok(&format!("set interface ip address test0 {}/64", ip6(0, 1)));
    lab.ok("ip route add 2001:db8:f::/48 via 10.0.1.77 test1");
    lab.ok("ip route add 2001:db8:e::/48 via 10.0.1.78 test1 out-labels 18");
    let labelled = Packet::new()
        .ipv6(ip6(0, 2), Ipv6Addr::new(0x2001, 0xdb8, 0xe, 0, 0, 0, 0, 1))
        .udp(1, 2)
        .payload(&[1; 60]);
    lab.deliver(0, vec![framed(0, &udp6(64)), framed(0, &labelled)]);
    lab.until("packets held", |lab| {
        lab.count("ip6-discover-neighbor", "packets held for neighbour discovery") == 2
    });
    let mut frames = Vec::new();
    lab.until("requests by ARP", |lab| {
        frames.extend(lab.sent());
        frames.iter().filter(|(_, frame)| frame[12..14] == [8, 6]).count() >= 2
    });
    lab.neighbor(1, ip(1, 77), host_mac(1, 77));
    lab.neighbor(1, ip(1, 78), host_mac(1, 78));
    lab.until("held packets", |lab| {
        frames.extend(lab.sent());
        let of = |kind: [u8; 2]| frames.iter().any(|(_, frame)| frame[12..14] == kind);
        of([0x86, 0xdd]) && of([0x88, 0x47])
    });
    lab.close();
}

#[test]
fn a_label_stands_for_an_interface() {
    let mut lab = router_with_ip6();
    lab.ok("ip route add 2001:db8:f::/48 via 2001:db8:0:1::2 test1");
    lab.ok("mpls local-label add 26 eos via rx-ip6 test2");
    let sent = lab.one(0, &labelled6(&[26], 64));
    assert_eq!((sent.by, sent.to), (1, host_mac(1, 2)));
    lab.up(2, false);
    let why = "interface that is to receive the packet is down";
    lab.lost(0, &labelled6(&[26], 64), "interface-rx-dpo-ip6", why);
    lab.up(2, true);
    lab.sent();
    // Features of the interface apply; without IPv6 nothing passes.
    lab.ok("set interface ip address del test2 all");
    let why = "ip6 is not enabled on the interface";
    lab.lost(0, &labelled6(&[26], 64), "ip6-not-enabled", why);
    lab.close();
}
