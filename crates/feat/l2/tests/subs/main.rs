//! Sub-interfaces: routed, cross connected and bridged ones between test interfaces.

#![allow(clippy::expect_used, clippy::panic)]

mod arp_term;
mod attack;
mod bvi;
mod filters;
mod levels;
mod many;
mod mixed;
mod reuse;
mod rewrites;

use std::net::Ipv4Addr;
use thalweg_buffer::{GsoKind, Offload};
use thalweg_device::testing::{Lab, our_mac};
use thalweg_device::{SwIfIndex, TagKind, TagMatch, VlanTag, interface};
use thalweg_wire::MacAddr;
use thalweg_wire::arp::{ArpRepr, ArpView};
use thalweg_wire::build::Packet;
use thalweg_wire::vlan::VlanId;

const EXACT: bool = true;

fn dot1q(id: u16) -> VlanTag {
    VlanTag::dot1q(id)
}

/// Frames with exactly this tag.
fn one(id: u16) -> TagMatch {
    TagMatch::Outer { tag: dot1q(id), exact: EXACT }
}

/// Frames with exactly these tags.
fn two(outer: VlanTag, inner: VlanTag) -> TagMatch {
    TagMatch::Pair { outer, inner, exact: EXACT }
}

fn lab(workers: usize) -> Lab {
    let setup = Lab::of(&thalweg_feat_l2::FEATURE).with(&thalweg_feat_ip4::FEATURE);
    setup.with(&thalweg_feat_pcap::FEATURE).workers(workers).buffers(4096).start()
}

/// Adds `testN.ID`, which is up.
fn sub(lab: &mut Lab, n: u8, id: u32, matches: TagMatch) -> SwIfIndex {
    let port = lab.sw_if(n);
    let sub = interface::create_sub(&mut lab.c, port, id, matches).expect("a sub-interface");
    interface::set_admin(&mut lab.c, sub, true).expect("up");
    sub
}

/// The MAC address of a host.
fn host(n: u8) -> MacAddr {
    MacAddr::new(2, 0, 0, 0x99, 0, n)
}

/// 10.NET.0.HOST
fn ip(net: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, net, 0, host)
}

/// A frame from a host with tags, as bytes, to a port.
fn frame(n: u8, from: u8, tags: &[VlanTag], ethertype: [u8; 2], packet: &[u8]) -> Vec<u8> {
    let mut frame = [our_mac(n).0, host(from).0].concat();
    for tag in tags {
        frame.extend(tag.kind.tpid().to_be_bytes());
        frame.extend(tag.id.0.to_be_bytes());
    }
    [&frame[..], &ethertype, packet].concat()
}

fn ipv4(n: u8, from: u8, tags: &[VlanTag], packet: &Packet) -> Vec<u8> {
    frame(n, from, tags, [8, 0], &packet.build())
}

fn udp(src: Ipv4Addr, dst: Ipv4Addr, len: usize) -> Packet {
    let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
    Packet::new().ipv4(src, dst).udp(1024, 53).payload(&data)
}

/// Destination, source, tags, ethertype and packet of a frame.
type Parts<'f> = ([u8; 6], [u8; 6], Vec<VlanTag>, [u8; 2], &'f [u8]);

fn parts(frame: &[u8]) -> Parts<'_> {
    let (mut tags, mut at) = (Vec::new(), 12);
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    while let Some(kind) =
        [TagKind::Dot1q, TagKind::Dot1ad].into_iter().find(|k| k.tpid() == word(at))
    {
        tags.push(VlanTag { kind, id: VlanId(word(at + 2) & 0xfff) });
        at += 4;
    }
    let address = |at: usize| *frame[at..].first_chunk().expect("an address");
    (address(0), address(6), tags, [frame[at], frame[at + 1]], &frame[at + 2..])
}

/// The only frame sent since the last call.
fn sent_one(lab: &mut Lab) -> (SwIfIndex, Vec<u8>) {
    let mut sent = lab.sent();
    assert_eq!(sent.len(), 1, "{sent:02x?}\n{}", lab.cli("show errors"));
    sent.remove(0)
}

fn neighbor(lab: &mut Lab, sw_if: SwIfIndex, ip: Ipv4Addr, mac: MacAddr) {
    let flags = thalweg_feat_neighbor::NeighborFlags { is_static: true, ..Default::default() };
    thalweg_feat_neighbor::set(&mut lab.c, sw_if, ip.into(), MacAddr(mac.0), flags)
        .expect("neighbour");
}

/// Packets and bytes that an interface received and sent.
fn counts(lab: &Lab, sw_if: SwIfIndex) -> [u64; 4] {
    let t = lab.c.interface_totals(sw_if);
    [t.rx_packets, t.rx_bytes, t.tx_packets, t.tx_bytes]
}

/// Networks 10.1 and 10.2 with one tag each on `test0`, 10.3 with two tags on `test1`, 10.4 without
/// tags on `test0`.
fn routed(workers: usize) -> (Lab, [(SwIfIndex, u8, Vec<VlanTag>); 4]) {
    let mut lab = lab(workers);
    let (s, c) = (VlanTag::dot1ad(30), dot1q(7));
    let ways = [
        (sub(&mut lab, 0, 10, one(10)), 0, vec![dot1q(10)]),
        (sub(&mut lab, 0, 20, one(20)), 0, vec![dot1q(20)]),
        (sub(&mut lab, 1, 3, two(s, c)), 1, vec![s, c]),
        (lab.sw_if(0), 0, vec![]),
    ];
    for (net, (sw_if, ..)) in (1..).zip(&ways) {
        let name = lab.c.interface_name(*sw_if);
        lab.ok(&format!("set interface ip address {name} 10.{net}.0.1/24"));
    }
    (lab, ways)
}

#[test]
fn ipv4_finds_its_way_between_tagged_networks() {
    let (mut lab, ways) = routed(1);
    for (from, to) in [(0, 2), (2, 1), (1, 0), (3, 0)] {
        let ((_, n, tags), (out, m, out_tags)) = (&ways[from], &ways[to]);
        let (a, b) = (ip(from as u8 + 1, 9), ip(to as u8 + 1, 9));
        let (ours, theirs) = (ip(from as u8 + 1, 1), ip(to as u8 + 1, 1));
        // Its host asks for the router, and is answered with its tags.
        let mut ask = [0; 28];
        ArpRepr::request(host(9), a, ours).emit(&mut ask).expect("room");
        let mut bytes = frame(*n, 9, tags, [8, 6], &ask);
        bytes[..6].fill(0xff);
        lab.receive(*n, vec![bytes]);
        let (port, reply) = sent_one(&mut lab);
        let (dst, src, found, kind, arp) = parts(&reply);
        assert_eq!((port, dst, src), (lab.sw_if(*n), host(9).0, our_mac(*n).0));
        assert_eq!((&found, kind), (tags, [8, 6]));
        let arp = ArpView::parse(arp).expect("ARP").repr();
        assert_eq!((arp.sender_ip, arp.sender_mac.0), (ours, our_mac(*n).0));
        // The packet waits for the other host, which is asked with its tags.
        let known = lab.cli("show ip neighbors").contains(&b.to_string());
        lab.deliver(*n, vec![ipv4(*n, 9, tags, &udp(a, b, 8))]);
        if !known {
            lab.until("a request", |lab| lab.sent_frames() > 0);
            let (port, request) = sent_one(&mut lab);
            let (dst, src, found, kind, arp) = parts(&request);
            assert_eq!((port, dst, src), (lab.sw_if(*m), [0xff; 6], our_mac(*m).0));
            assert_eq!((&found, kind), (out_tags, [8, 6]));
            let asked = ArpView::parse(arp).expect("ARP").repr();
            assert_eq!((asked.sender_ip, asked.target_ip), (theirs, b));
            let mut answer = [0; 28];
            asked.reply(host(9)).emit(&mut answer).expect("room");
            lab.deliver(*m, vec![frame(*m, 9, out_tags, [8, 6], &answer)]);
        }
        lab.until("the packet", |lab| lab.sent_frames() > 0);
        lab.settle();
        let (port, bytes) = sent_one(&mut lab);
        let (dst, src, found, kind, packet) = parts(&bytes);
        assert_eq!((port, dst, src), (lab.sw_if(*m), host(9).0, our_mac(*m).0));
        assert_eq!((&found, kind), (out_tags, [8, 0]));
        assert_eq!(packet, udp(a, b, 8).ttl(63).build());
        assert!(counts(&lab, *out).iter().all(|n| *n > 0));
    }
    lab.close();
}

/// Routed, cross connected and bridged sub-interfaces, and a routed port.
#[test]
fn layers_two_and_three_share_a_port() {
    let (mut lab, ways) = routed(1);
    let connected = sub(&mut lab, 0, 40, TagMatch::Outer { tag: dot1q(40), exact: false });
    let bridged = sub(&mut lab, 0, 50, one(50));
    let other = sub(&mut lab, 1, 50, one(50));
    lab.ok("set interface l2 xconnect test0.40 test1");
    for port in ["test0.50", "test1.50", "test2"] {
        lab.ok(&format!("set interface l2 bridge {port} 10"));
    }
    for (net, (sw_if, ..)) in (1..).zip(&ways) {
        neighbor(&mut lab, *sw_if, ip(net, 9), host(9));
    }
    let (test1, test2) = (lab.sw_if(1), lab.sw_if(2));
    let to = udp(ip(1, 9), ip(3, 9), 4);
    let foreign = |tags: &[VlanTag]| {
        let mut bytes = ipv4(0, 9, tags, &to);
        bytes[..6].copy_from_slice(&host(77).0);
        bytes
    };
    for size in [1, 60] {
        let sent_to = |lab: &mut Lab, bytes: Vec<u8>| {
            lab.receive(0, vec![bytes; size]);
            let mut sent = lab.sent();
            sent.dedup();
            sent
        };
        let sent = sent_to(&mut lab, ipv4(0, 9, &[dot1q(10)], &to));
        assert_eq!(sent.len(), 1);
        assert_eq!((sent[0].0, parts(&sent[0].1).2), (test1, ways[2].2.clone()));
        let through = foreign(&[dot1q(40), dot1q(99)]);
        assert_eq!(sent_to(&mut lab, through.clone()), [(test1, through)]);
        let flooded = foreign(&[dot1q(50)]);
        let mut sent = sent_to(&mut lab, flooded.clone());
        sent.sort_unstable();
        sent.dedup();
        assert_eq!(sent, [(test1, flooded.clone()), (test2, flooded)]);
        // A routed interface takes only what is addressed to it.
        assert!(sent_to(&mut lab, foreign(&[dot1q(10)])).is_empty());
        assert!(sent_to(&mut lab, foreign(&[])).is_empty());
    }
    assert_eq!(lab.count("ethernet-input", "l3 mac mismatch"), 2 * 61);
    for sw_if in [connected, bridged] {
        assert_eq!(counts(&lab, sw_if)[0], 61);
    }
    assert_eq!(counts(&lab, other)[2], 61);
    // Known addresses leave by their sub-interface alone.
    let learned = |lab: &mut Lab| lab.c.state::<thalweg_feat_l2::L2>().borrow().bridges().count().0;
    let mut bytes = foreign(&[dot1q(50)]);
    bytes.copy_within(0..6, 6);
    bytes[..6].copy_from_slice(&host(9).0);
    lab.receive(1, vec![bytes.clone()]);
    lab.until("two addresses", |lab| learned(lab) == 2);
    lab.sent();
    for size in [1, 60] {
        lab.receive(1, vec![bytes.clone(); size]);
        assert_eq!(lab.sent(), vec![(lab.sw_if(0), bytes.clone()); size]);
    }
    assert_eq!(counts(&lab, bridged)[2], 62);
    interface::delete(&mut lab.c, bridged).expect("delete");
    assert!(!lab.cli("show bridge-domain 10 detail").contains("test0.50"));
    lab.receive(0, vec![foreign(&[dot1q(50)])]);
    assert_eq!((lab.sent().len(), lab.count("ethernet-input", "unknown vlan")), (0, 1));
    lab.close();
}

/// Broadcasts of a bridged sub-interface are its port's, too.
#[test]
fn broadcasts_are_counted_for_the_port_as_well() {
    let mut lab = lab(1);
    let bridged = sub(&mut lab, 0, 50, one(50));
    for port in ["test0.50", "test1"] {
        lab.ok(&format!("set interface l2 bridge {port} 10"));
    }
    let mut bytes = ipv4(0, 9, &[dot1q(50)], &udp(ip(1, 9), ip(1, 255), 4));
    bytes[..6].fill(0xff);
    let (port, other) = (lab.sw_if(0), lab.sw_if(1));
    let counted = |lab: &Lab, sw_if| {
        let t = lab.c.interface_totals(sw_if);
        [t.rx_broadcast, t.tx_broadcast]
    };
    for (n, captured) in [(1, false), (60, false), (1, true), (60, true)] {
        if captured && n == 1 {
            // Packets that a tap looks at go another way.
            lab.ok("pcap trace rx max 10 intfc test0.50");
        }
        let before = [port, bridged, other].map(|sw_if| counted(&lab, sw_if));
        lab.receive(0, vec![bytes.clone(); n]);
        let after = [port, bridged, other].map(|sw_if| counted(&lab, sw_if));
        let n = n as u64;
        let [[rx, _], [rx_sub, _], [_, tx]] = before;
        let expected = (rx + n, rx_sub + n, tx + n);
        assert_eq!((after[0][0], after[1][0], after[2][1]), expected);
        lab.receive(1, vec![bytes.clone(); n as usize]);
        for sw_if in [port, bridged] {
            assert_eq!(counted(&lab, sw_if)[1], n + after[0][1]);
        }
        lab.sent();
    }
    lab.close();
}

#[test]
fn broken_and_unknown_tags_are_counted_drops() {
    let (mut lab, ways) = routed(1);
    neighbor(&mut lab, ways[0].0, ip(1, 9), host(9));
    let default = sub(&mut lab, 2, 1, TagMatch::Default);
    let packet = udp(ip(1, 9), ip(1, 1), 8);
    let count = |lab: &Lab, what| lab.count("ethernet-input", what);
    let eight: Vec<VlanTag> = (10..18).map(dot1q).collect();
    // The interface takes neither more tags than the exact ones, nor others.
    for tags in [&eight[..], &[dot1q(11)], &[dot1q(10), dot1q(7)], &[VlanTag::dot1ad(10)]] {
        let before = count(&lab, "unknown vlan");
        for n in [0, 2] {
            lab.receive(n, vec![ipv4(n, 9, tags, &packet); 5]);
        }
        assert_eq!(count(&lab, "unknown vlan") - before, 10, "{tags:?}");
    }
    assert_eq!(counts(&lab, default)[0], 20, "received, but not routed");
    for len in 0..18 {
        let mut bytes = ipv4(0, 9, &[dot1q(10)], &packet);
        bytes.truncate(len);
        lab.receive(0, vec![bytes; 2]);
    }
    assert_eq!(count(&lab, "frame too short"), 36);
    // The port has what is tagged with priority only, with sub-interfaces and without.
    lab.receive(0, vec![ipv4(0, 9, &[dot1q(0)], &packet)]);
    assert_eq!(counts(&lab, lab.sw_if(0))[0], 20 + 36 + 1);
    assert_eq!(lab.c.interface_totals(lab.sw_if(0)).ip4, 1);
    let before = count(&lab, "unknown vlan");
    interface::delete(&mut lab.c, default).expect("delete");
    lab.receive(2, vec![ipv4(2, 9, &[dot1q(0)], &packet), ipv4(2, 9, &[dot1q(5)], &packet)]);
    assert_eq!(count(&lab, "unknown vlan") - before, 1);
    assert_eq!(lab.c.interface_totals(lab.sw_if(2)).ip4, 1);
    // One that is down takes nothing.
    let down = interface::find(&lab.c, "test0.10").expect("it");
    interface::set_admin(&mut lab.c, down, false).expect("down");
    lab.receive(0, vec![ipv4(0, 9, &[dot1q(10)], &packet); 7]);
    assert_eq!(count(&lab, "interface is down"), 7);
    lab.close();
}

/// A GSO packet is cut, and a long packet fragmented, behind headers with tags.
#[test]
fn packets_are_cut_behind_their_tags() {
    let (mut lab, ways) = routed(1);
    for (net, (sw_if, ..)) in (1..).zip(&ways) {
        neighbor(&mut lab, *sw_if, ip(net, 9), host(9));
    }
    for to in 0..4u8 {
        let (out, m, tags) = ways[usize::from(to)].clone();
        let (src, dst) = (ip(4, 9), ip(to + 1, 9));
        let data: Vec<u8> = (0..3000).map(|i| (i % 251) as u8).collect();
        let tcp = Packet::new().ipv4(src, dst).tcp(1, 2).payload(&data);
        let offload = Offload {
            gso: GsoKind::Tcp4,
            gso_size: 1000,
            hdr_len: 40,
            csum_start: 20,
            csum_offset: 16,
            needs_csum: true,
            ..Offload::default()
        };
        let before = counts(&lab, out);
        lab.receive_offload(0, ipv4(0, 9, &[], &tcp), offload);
        let sent = lab.sent();
        assert_eq!(sent.len(), 3);
        let mut whole: Vec<u8> = Vec::new();
        for (port, bytes) in &sent {
            let (.., found, kind, packet) = parts(bytes);
            assert_eq!((*port, &found, kind), (lab.sw_if(m), &tags, [8, 0]));
            assert_eq!(packet.len(), 1040);
            whole.extend(&packet[40..]);
        }
        assert_eq!(whole, data);
        let after = counts(&lab, out);
        assert_eq!((after[2] - before[2], after[3] - before[3]), {
            (3, sent.iter().map(|(_, bytes)| bytes.len() as u64).sum())
        });
        if to < 3 {
            interface::set_mtu(&mut lab.c, out, thalweg_device::MtuOf::L3, 576).expect("MTU");
            lab.receive(0, vec![ipv4(0, 9, &[], &udp(src, dst, 1000))]);
            let sent = lab.sent();
            assert_eq!(sent.len(), 2, "fragments");
            for (port, bytes) in sent {
                let (.., found, kind, packet) = parts(&bytes);
                assert_eq!((port, &found, kind), (lab.sw_if(m), &tags, [8, 0]));
                assert!(packet.len() <= 576);
            }
            assert_eq!(counts(&lab, out)[2] - after[2], 2);
        }
    }
    lab.close();
}
