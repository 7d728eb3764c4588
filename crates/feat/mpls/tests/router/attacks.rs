//! An enemy's packets: stacks of any depth, labels of any kind in any place, packets that left work
//! to the device.

use crate::lab::{
    FAR, Mpls, framed, inner, labelled, labelling, left, router, router_with_ip6, setup, udp,
};
use proptest::prelude::*;
use std::net::Ipv4Addr;
use thalweg_buffer::{GsoKind, Offload};
use thalweg_device::testing::ip4::ip;
use thalweg_device::testing::ip6::ip as ip6;
use thalweg_device::testing::{Lab, host_mac};
use thalweg_feat_neighbor as neighbor;
use thalweg_wire::build::Packet;
use thalweg_wire::ipv4;
use thalweg_wire::mpls::{Entry, Label};

/// Labels of all kinds.
fn bound() -> Lab {
    let mut lab = router_with_ip6();
    lab.cli("mpls tunnel add l2-only via 10.0.1.2 test1 out-labels 60");
    lab.ok("ip table add 10\nip route add 16.0.0.0/24 table 10 via 10.0.2.2 test2\n\
            ip route add 16.0.0.0/24 via 10.0.1.3 test1\nmpls table add 5\nip6 table add 10\n\
            ip route add 2001:db8:9::/48 table 10 via 2001:db8:0:2::2 test2\n\
            mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17\n\
            mpls local-label add 16 non-eos via 10.0.1.2 test1 out-labels 17 18\n\
            mpls local-label add 17 eos via 10.0.1.2 test1\n\
            mpls local-label add 17 non-eos via mpls-lookup-in-table 0\n\
            mpls local-label add 18 eos via ip4-lookup-in-table 10\n\
            mpls local-label add 18 non-eos via 10.0.2.2 test2 out-labels implicit-null\n\
            mpls local-label add 19 eos via 10.0.1.2 test1 out-labels 20 via 10.0.2.2 test2\n\
            mpls local-label add 19 non-eos via mpls-lookup-in-table 5\n\
            mpls local-label add 20 eos via ip6-lookup-in-table 10\n\
            mpls local-label add 21 eos via via-label 16 out-labels 40\n\
            mpls local-label add 22 eos via ip4-lookup-in-table 10 out-labels implicit-null uniform\n\
            mpls local-label add 23 eos via rx-ip4 test2\n\
            set interface state mpls-tunnel0 up\nset interface l2 xconnect mpls-tunnel0 test2\n\
            mpls local-label add 24 eos via l2-input-on mpls-tunnel0\n\
            mpls local-label add 25 eos via l2-input-on mpls-tunnel0 pop-pw-cw");
    lab.settle();
    lab
}

prop_compose! {
    fn stacked()(
        labels in prop::collection::vec((0u32..27, prop_oneof![4 => Just(64u8), 1 => 0u8..3]), 1..6),
        closed in prop::bool::weighted(0.9),
        what in 0u8..8,
        junk in prop::collection::vec(any::<u8>(), 0..60),
        cut in prop_oneof![3 => Just(usize::MAX), 1 => 0usize..60],
    ) -> Vec<u8> {
        let n = labels.len();
        let entry = |(i, (label, ttl)): (usize, &(u32, u8))| {
            Entry::new(Label(*label), 0, closed && i + 1 == n, *ttl).0.to_be_bytes()
        };
        let stack: Vec<u8> = labels.iter().enumerate().flat_map(entry).collect();
        let far6 = "2001:db8:9::1".parse().expect("an address");
        let payload = match what {
            0..=2 => inner(33),
            3 => Packet::new().ipv6(ip6(0, 2), far6).udp(1, 2).payload(&[7; 40]).build(),
            // Extension headers, whose lengths and the packet's may lie.
            6 | 7 => {
                let headers: Vec<u8> = junk.chunks_exact(8).take(3).enumerate().flat_map(|(i, h)| {
                    let next = [0, 43, 44, 51, 60, 17, 58, 59][usize::from(h[1]) % 8];
                    [if i == 2 { 17 } else { next }, h[2] % 3, h[3], h[4], 0, 0, 0, 7]
                }).collect();
                let first = [0, 43, 44, 60][usize::from(junk.first().copied().unwrap_or(0)) % 4];
                let mut packet = Packet::new().ipv6(ip6(0, 2), far6).udp(1, 2).payload(&[7; 40]).build();
                if !headers.is_empty() {
                    packet[6] = first;
                }
                packet[5] = if what == 6 { 48 + headers.len() as u8 } else { junk.len() as u8 };
                packet.splice(40..40, headers);
                packet
            }
            4 => [&[2, 0, 0, 0xc, 0, 1, 2, 0, 0, 0xc, 0, 2, 8, 0][..], &junk].concat(),
            _ => junk,
        };
        let mut all = [stack, payload].concat();
        all.truncate(cut);
        all
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]
    /// Kernels treat packets as they are treated one by one.
    #[test]
    fn packets_in_a_frame_are_treated_as_single_ones(
        packets in prop::collection::vec(stacked(), 4..24), alike in any::<bool>(),
    ) {
        let mut lab = bound();
        let packets = match alike {
            true => vec![packets[0].clone(); packets.len()],
            false => packets,
        };
        let mut alone = Vec::new();
        for packet in &packets {
            alone.extend(lab.forward(0, &Packet::new().payload(packet), 1));
        }
        let dropped = lab.dropped();
        let frames = packets.iter().map(|p| framed(0, &Packet::new().payload(p))).collect();
        lab.receive(0, frames);
        let together = lab.sent();
        let number = |i| lab.c.interface_name(i).trim_start_matches("test").parse().unwrap_or(9);
        let mut together: Vec<(u8, Vec<u8>)> =
            together.into_iter().map(|(i, frame)| (number(i), frame)).collect();
        alone.sort();
        together.sort();
        prop_assert_eq!(alone, together);
        prop_assert_eq!(lab.dropped(), 2 * dropped);
        lab.close();
    }
}

#[test]
fn an_entropy_label_goes_with_its_indicator() {
    let mut lab = bound();
    let sent = lab.one(0, &labelled(&[17, 7, 500, 16], 64));
    assert_eq!(sent.labels, [(17, 0, true, 63)]);
    // The entropy label is the bottom, and has a TTL of 0 (RFC 6790 section 4.2).
    for (count, start) in [(1, &[][..]), (1, &[17]), (30, &[17, 0, 17])] {
        let stack = start.iter().fold(Packet::new(), |p, label| p.mpls(*label).ttl(9));
        let packet = stack.mpls(7).ttl(9).mpls(500).ttl(0);
        let packet = packet.ipv4(ip(0, 2), FAR).ttl(33).udp(1024, 53).payload(&[7; 100]);
        let sent = lab.forward(0, &packet, count);
        assert_eq!(sent.len(), count, "{}", lab.cli("show errors"));
        let sent = left(&sent[0]);
        assert_eq!((sent.by, sent.to, sent.rest), (1, host_mac(1, 3), inner(32)));
    }
    // An indicator at the bottom, or at the end of the packet, has no effect.
    lab.lost(0, &labelled(&[7], 9), "mpls-lookup", "mpls label is not bound");
    let none = Packet::new().mpls(7).mpls(500).payload(&[0x10; 40]);
    lab.lost(0, &none, "mpls-lookup", "mpls label is not bound");
    let end = Packet::new().payload(&Entry::new(Label(7), 0, false, 9).0.to_be_bytes());
    lab.lost(0, &end, "mpls-lookup", "mpls packet shorter than a label");
    // The entropy label still chooses the path of packets that only pass.
    lab.ok("mpls local-label add 30 non-eos via 10.0.1.2 test1 out-labels 31 via 10.0.2.2 test2 out-labels 31");
    let ways = |lab: &mut Lab, entropy| {
        let stack = Packet::new().mpls(30).ttl(9).mpls(7).ttl(9).mpls(entropy).ttl(0);
        let packet = stack.ipv4(ip(0, 2), FAR).udp(1024, 53).payload(&[7; 40]);
        lab.forward(0, &packet, 1)[0].0
    };
    let all: std::collections::BTreeSet<u8> = (16..60).map(|n| ways(&mut lab, n)).collect();
    assert_eq!(all.len(), 2);
    lab.close();
}

/// A TCP or UDP packet with work left to the device.
fn unfinished(packet: Packet, gso: GsoKind, size: u16) -> (Vec<u8>, Offload) {
    let mut bytes = packet.build();
    let udp = bytes[9] == 17;
    let csum_offset = if udp { 6 } else { 16 };
    // The sum of the pseudo header, as the kernel leaves it.
    let length = (bytes.len() - 20) as u16;
    let pseudo = [&bytes[12..20], &[0, bytes[9]], &length.to_be_bytes()].concat();
    let sum = !thalweg_wire::checksum::checksum(&pseudo);
    bytes[20 + csum_offset..22 + csum_offset].copy_from_slice(&sum.to_be_bytes());
    let offload = Offload {
        gso,
        gso_size: size,
        hdr_len: if udp { 28 } else { 40 },
        csum_start: 20,
        csum_offset: csum_offset as u16,
        needs_csum: true,
        ..Offload::default()
    };
    (bytes, offload)
}

/// Puts fragments together again; the checksum has to be right.
fn whole(pieces: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::new();
    for piece in pieces {
        let view = ipv4::check(piece).expect("a sound header");
        assert_eq!(view.fragment_offset(), all.len());
        all.extend_from_slice(view.payload());
    }
    let view = ipv4::check(&pieces[0]).expect("a header");
    let pseudo = [
        &view.src().octets()[..],
        &view.dst().octets(),
        &[0, view.protocol()],
        &(all.len() as u16).to_be_bytes(),
        &all,
    ];
    assert!(thalweg_wire::checksum::verify(&pseudo.concat()), "a wrong checksum");
    all
}

#[test]
fn fragments_behind_labels_have_the_checksums_left_to_the_device() {
    let mut lab = router();
    lab.ok("ip route add 16.0.0.0/24 via 10.0.1.2 test1 out-labels 18 17");
    lab.ok("mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17");
    lab.ok("set interface mtu mpls 500 test1");
    let datagram = Packet::new().ipv4(ip(0, 2), FAR).udp(1, 2).payload(&[5; 1000]);
    let segments = Packet::new().ipv4(ip(0, 2), FAR).tcp(1, 2).payload(&[6; 2000]);
    for labels in [&[][..], &[16]] {
        for (packet, gso, size, n) in
            [(&datagram, GsoKind::None, 0, 1), (&segments, GsoKind::Tcp4, 700, 3)]
        {
            let (bytes, offload) = unfinished(packet.clone(), gso, size);
            let stack = labels.iter().fold(Packet::new(), |p, label| p.mpls(*label));
            let header = match labels {
                [] => framed(0, packet)[..14].to_vec(),
                _ => framed(0, &stack.clone().payload(&[0; 40]))[..14].to_vec(),
            };
            let stack = if labels.is_empty() {
                Vec::new()
            } else {
                Entry::new(Label(16), 0, true, 64).0.to_be_bytes().to_vec()
            };
            lab.receive_offload(0, [header, stack, bytes].concat(), offload);
            let sent: Vec<Vec<u8>> = lab
                .sent()
                .into_iter()
                .map(|(_, frame)| {
                    let piece = left(&(1, frame));
                    assert!(piece.rest.len() + piece.labels.len() * 4 <= 500);
                    piece.rest
                })
                .collect();
            let firsts = sent.iter().filter(|p| u16::from_be_bytes([p[6], p[7]]) & 0x1fff == 0);
            assert_eq!(firsts.count(), n, "{}", lab.cli("show errors"));
            let starts = |p: &Vec<u8>| u16::from_be_bytes([p[6], p[7]]) & 0x1fff == 0;
            let mut data = 0;
            let mut rest = &sent[..];
            while let Some((first, others)) = rest.split_first() {
                let more = others.iter().take_while(|p| !starts(p)).count();
                assert!(starts(first));
                let all = whole(&rest[..=more]);
                data += all.len() - if gso == GsoKind::None { 8 } else { 20 };
                rest = &rest[more + 1..];
            }
            assert_eq!(data, if gso == GsoKind::None { 1000 } else { 2000 });
        }
    }
    lab.close();
}

/// Cut, its parts would begin at the start of a datagram, with ports that no filter has seen.
#[test]
fn fragments_behind_the_end_of_a_datagram_are_not_cut() {
    let mut lab = router();
    lab.ok("mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17\n\
            mpls local-label add 20 eos via 10.0.1.2 test1\n\
            mpls local-label add 22 eos via ip4-lookup-in-table 0\n\
            ip route add 16.0.0.0/24 via 10.0.1.2 test1\n\
            set interface mtu mpls 500 test1\nset interface mtu ip4 500 test1");
    let behind = |label: u32| {
        let packet = Packet::new().mpls(label).ipv4(ip(0, 2), FAR).fragment(64_984, false);
        packet.udp(1, 2).payload(&[7; 580])
    };
    let why = "mpls MTU exceeded and no ip packet behind the labels";
    lab.lost(0, &behind(16), "mpls-frag", why);
    let why = "bad ip4 header after the last mpls label";
    lab.lost(0, &behind(20), "ip4-mpls-label-disposition-pipe", why);
    lab.lost(0, &behind(22), "lookup-ip4-dst", why);
    lab.close();
}

#[test]
fn labels_change_under_load_of_two_workers() {
    let mut lab = labelling(setup().workers(2));
    lab.ok(
        "mpls table add 5\nip table add 10\nip route add 16.0.0.0/24 table 10 via 10.0.2.2 test2",
    );
    let packets = |label: u32| vec![framed(0, &labelled(&[label], 64)); 64];
    for round in 0..60u32 {
        for worker in 0..2 {
            for label in [16, 17, 18] {
                lab.deliver_to(worker, 0, packets(label));
            }
        }
        let out = 100 + round;
        lab.ok(&format!(
            "mpls local-label replace 16 eos via 10.0.1.2 test1 out-labels {out}\n\
             mpls local-label replace 17 eos via via-label 40 out-labels {out}\n\
             mpls local-label replace 40 non-eos via 10.0.{}.2 test{} out-labels {out}",
            1 + round % 2,
            1 + round % 2
        ));
        match round % 4 {
            0 => lab.ok("mpls local-label replace 18 eos via ip4-lookup-in-table 10"),
            1 => lab.ok("mpls local-label replace 18 eos via 10.0.1.3 test1"),
            2 => lab.ok("mpls local-label del 18 eos\nmpls local-label del 40"),
            _ => lab.ok("ip table del 10\nip table add 10\n\
                         ip route add 16.0.0.0/24 table 10 via 10.0.2.2 test2"),
        }
        lab.c.run_once(Some(std::time::Duration::ZERO));
    }
    lab.settle();
    for (_, frame) in lab.sent() {
        let sent = left(&(0, frame));
        assert!(sent.labels.len() <= 2 && sent.rest.len() >= 128, "{sent:?}");
    }
    lab.ok("mpls local-label replace 16 eos via 10.0.1.2 test1 out-labels 99");
    assert_eq!(lab.one(0, &labelled(&[16], 64)).labels, [(99, 0, true, 63)]);
    lab.close();
}

#[test]
fn tables_and_interfaces_that_vanish_take_nothing_else_along() {
    let mut lab = router();
    lab.ok("ip table add 7\nmpls table add 5");
    lab.ok("ip route add 1.1.1.1/32 table 7 via 10.0.1.2 test1 out-labels 50");
    lab.ok("ip route add 16.0.0.0/24 via 1.1.1.1 next-hop-table 7 out-labels 17");
    assert_eq!(lab.one(0, &udp(50)).labels, [(50, 0, false, 64), (17, 0, true, 64)]);
    let why = lab.cli("ip table del 7");
    assert!(why.contains("next hops in table 7"), "{why}");
    lab.ok("mpls local-label add 20 non-eos via mpls-lookup-in-table 5");
    lab.ok("mpls local-label add 21 eos table 5 via 10.0.1.2 test1 out-labels 22");
    assert_eq!(lab.one(0, &labelled(&[20, 21], 9)).labels, [(22, 0, true, 8)]);
    lab.ok("mpls table del 5");
    lab.lost(0, &labelled(&[20, 21], 9), "mpls-lookup", "no mpls table");
    lab.ok("mpls table add 5");
    lab.lost(0, &labelled(&[20, 21], 9), "mpls-lookup", "mpls label is not bound");
    // Labels on a sub-interface that goes.
    lab.cli("create sub-interfaces test2 9");
    lab.ok("set interface state test2.9 up\n\
            set interface ip address test2.9 10.9.0.1/24");
    let sub = thalweg_device::interface::find(&lab.c, "test2.9").expect("a sub-interface");
    let flags = neighbor::NeighborFlags { is_static: true, ..Default::default() };
    let hop = Ipv4Addr::new(10, 9, 0, 2);
    neighbor::set(&mut lab.c, sub, hop.into(), host_mac(9, 2), flags).expect("neighbour");
    lab.ok("ip route replace 16.0.0.0/24 via 10.9.0.2 out-labels 18 17");
    lab.ok("mpls local-label add 30 eos via 10.9.0.2 test2.9 out-labels 31 32");
    let sent = lab.forward(0, &udp(50), 5);
    assert_eq!(sent.len(), 5, "{}", lab.cli("show errors"));
    assert_eq!(sent[0].1[12..18], [0x81, 0, 0, 9, 0x88, 0x47]);
    lab.ok("delete sub-interface test2.9");
    assert_eq!(lab.forward(0, &udp(50), 5), []);
    lab.lost(0, &labelled(&[30], 9), "mpls-lookup", "mpls label is not bound");
    lab.close();
}
