//! Packets through the router.

use crate::{bare, router};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use thalweg_device::SwIfIndex;
use thalweg_device::testing::ip4::{framed, icmp_error, ip, sound, udp};
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_wire::arp::{ArpRepr, ArpView};
use thalweg_wire::build::Packet;
use thalweg_wire::{checksum, ipv4};

#[test]
fn a_packet_passes_with_one_hop_less() {
    let mut lab = router();
    let packet = udp(ip(0, 2), ip(1, 2), 100).ttl(17).tos(0xb8).id(4711).build();
    lab.receive(0, vec![framed(0, 2, &packet)]);
    let out = lab.sent_one(1);
    assert_eq!(sound(1, 2, &out).ttl(), 16);
    let mut want = packet;
    want[8] = 16;
    want[10..12].fill(0);
    let sum = checksum::checksum(&want[..20]);
    want[10..12].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(out[14..], want);
    lab.close();
}

#[test]
fn padding_is_cut_off_and_options_stay() {
    let mut lab = router();
    let packet = udp(ip(0, 2), ip(1, 2), 3).ip_options(&[1, 1, 7, 7, 4, 0, 0, 0, 0, 0]).build();
    let mut frame = framed(0, 2, &packet);
    frame.resize(80, 0xee);
    lab.receive(0, vec![frame]);
    let out = lab.sent_one(1);
    assert_eq!(out.len(), 14 + packet.len());
    assert_eq!(out[14 + 20..], packet[20..]);
    sound(1, 2, &out);
    lab.close();
}

#[test]
fn large_packets_in_chains_pass() {
    let mut lab = router();
    let packet = udp(ip(0, 2), ip(1, 2), 8000).dont_fragment().build();
    lab.receive(0, vec![framed(0, 2, &packet); 3]);
    let sent = lab.sent();
    assert_eq!(sent.len(), 3);
    for (_, out) in sent {
        sound(1, 2, &out);
        assert_eq!(out[14 + 20..], packet[20..]);
    }
    lab.close();
}

#[test]
fn checksums_are_right_for_every_ttl() {
    let mut lab = router();
    let packets = (0..=255).flat_map(|ttl| {
        [0, 0x1234, 0xffff]
            .map(|id| framed(0, 2, &udp(ip(0, 2), ip(1, 2), 8).ttl(ttl).id(id).build()))
    });
    lab.receive(0, packets.collect());
    let (test1, mut n) = (lab.sw_if(1), 0);
    for (sw_if, out) in lab.sent() {
        if sw_if == test1 {
            let v = ipv4::check(&out[14..]).expect("sound");
            assert_eq!(v.checksum(), v.computed_checksum());
            n += 1;
        }
    }
    assert_eq!(n, 3 * 254);
    assert_eq!(lab.count("ip4-rewrite", "ip4 ttl <= 1"), 6);
    lab.close();
}

/// Reassembles fragments.
fn reassemble(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut whole = Vec::new();
    for f in frames {
        let v = ipv4::check(&f[14..]).expect("sound");
        let end = v.fragment_offset() + v.payload().len();
        whole.resize(whole.len().max(end), 0);
        whole[v.fragment_offset()..end].copy_from_slice(v.payload());
    }
    whole
}

#[test]
fn long_packets_are_fragmented() {
    let mut lab = router();
    lab.ok("set interface mtu packet 600 test1");
    let packet = udp(ip(0, 2), ip(1, 2), 3000).id(99).ttl(9).build();
    lab.receive(0, vec![framed(0, 2, &packet)]);
    let frames: Vec<Vec<u8>> = lab.sent().into_iter().map(|f| f.1).collect();
    assert_eq!(frames.len(), 6);
    for (i, f) in frames.iter().enumerate() {
        let v = sound(1, 2, f);
        assert!(f.len() - 14 <= 600);
        assert_eq!((v.id(), v.ttl(), v.more_fragments()), (99, 8, i < 5));
    }
    assert_eq!(reassemble(&frames), packet[20..]);
    assert_eq!(lab.count("ip4-frag", "fragments sent"), 6);
    lab.close();
}

#[test]
fn df_packets_are_refused_with_the_mtu() {
    let mut lab = router();
    lab.ok("set interface mtu packet 1000 test1");
    let packet = udp(ip(0, 2), ip(1, 2), 1200).dont_fragment().build();
    lab.receive(0, vec![framed(0, 2, &packet)]);
    let e = icmp_error(0, 2, &lab.sent_one(0));
    assert_eq!((e.kind, e.code, e.mtu), (3, 4, Some(1000)));
    let text = "ip4 MTU exceeded and DF set";
    assert_eq!(lab.count("ip4-rewrite", text), 1);
    // A packet as long as the MTU passes.
    let packet = udp(ip(0, 2), ip(1, 2), 1000 - 28).dont_fragment().build();
    lab.receive(0, vec![framed(0, 2, &packet)]);
    assert_eq!(lab.sent_one(1).len(), 1014);
    lab.close();
}

#[test]
fn flows_keep_to_their_path_and_share_by_weight() {
    let mut lab = router();
    lab.ok("ip route add 192.0.2.0/24 via 10.0.1.2 test1 weight 1 via 10.0.2.2 test2 weight 3");
    let flow = |i: u32| {
        let dst = Ipv4Addr::from_bits(0xc000_0200 | (i % 256));
        let packet = Packet::new().ipv4(ip(0, 2), dst).udp(1000 + (i / 256) as u16, 53);
        framed(0, 2, &packet.payload(&i.to_be_bytes()).build())
    };
    let mut path: HashMap<u32, SwIfIndex> = HashMap::new();
    for _ in 0..3 {
        lab.receive(0, (0..4000).map(flow).collect());
        for (sw_if, out) in lab.sent() {
            let i = u32::from_be_bytes(*out.last_chunk().expect("a packet"));
            assert_eq!(*path.entry(i).or_insert(sw_if), sw_if, "flow {i}");
        }
    }
    assert_eq!(path.len(), 4000);
    let test2 = lab.sw_if(2);
    let share = path.values().filter(|p| **p == test2).count();
    assert!((2850..3150).contains(&share), "{share} of 4000 flows, 3000 expected");
    lab.close();
}

#[test]
fn a_path_that_is_down_is_left_out() {
    let mut lab = router();
    lab.ok("ip route add 192.0.2.0/24 via 10.0.1.2 test1 via 10.0.2.2 test2");
    let packets: Vec<_> =
        (0..64).map(|i| framed(0, 2, &udp(ip(0, 2), [192, 0, 2, i].into(), 8).build())).collect();
    lab.up(1, false);
    lab.receive(0, packets.clone());
    let test2 = lab.sw_if(2);
    let sent = lab.sent();
    assert_eq!(sent.len(), 64);
    assert!(sent.iter().all(|(i, _)| *i == test2));
    lab.up(1, true);
    lab.receive(0, packets);
    let back = lab.sent().iter().filter(|(i, _)| *i != test2).count();
    assert!((16..48).contains(&back), "{back} of 64");
    lab.close();
}

#[test]
fn two_tables_with_the_same_prefix() {
    let mut lab = bare().start();
    lab.ok("ip table add 7\n\
         ip table unreachables 0 on\n\
         ip table unreachables 7 on\n\
         set interface ip table test2 7\n\
         set interface ip address test0 10.0.0.1/24\n\
         set interface ip address test1 10.0.1.1/24\n\
         set interface ip address test2 10.0.0.1/24\n\
         ip route add 192.0.2.0/24 via 10.0.1.2\n\
         ip route add 192.0.2.0/24 table 7 via 10.0.0.3");
    lab.neighbor(1, ip(1, 2), host_mac(1, 2));
    lab.neighbor(2, ip(0, 3), host_mac(2, 3));
    let dst = Ipv4Addr::new(192, 0, 2, 9);
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), dst, 8).build())]);
    sound(1, 2, &lab.sent_one(1));
    lab.receive(2, vec![framed(2, 3, &udp(ip(0, 3), dst, 8).build())]);
    sound(2, 3, &lab.sent_one(2));
    // A new table with the same id shares nothing with the old one.
    lab.ok("set interface ip address del test2 all\n\
         set interface ip table test2 0\n\
         ip table del 7\n\
         ip table add 7\n\
         ip table unreachables 7 on\n\
         set interface ip table test2 7\n\
         set interface ip address test2 10.0.0.1/24");
    lab.receive(2, vec![framed(2, 3, &udp(ip(0, 3), dst, 8).build())]);
    let e = icmp_error(2, 3, &lab.sent_one(2));
    assert_eq!((e.kind, e.code), (3, 0));
    lab.close();
}

/// A table that goes leaves its place to another one, whose interfaces find it there.
#[test]
fn tables_move_when_others_go() {
    let mut lab = bare().start();
    lab.ok("ip table add 5\n\
         ip table add 6\n\
         ip table add 7\n\
         set interface ip table test2 7\n\
         set interface ip address test0 10.0.0.1/24\n\
         set interface ip address test2 10.0.0.1/24\n\
         ip route add 192.0.2.0/24 table 7 via 10.0.0.3");
    lab.neighbor(2, ip(0, 3), host_mac(2, 3));
    let dst = Ipv4Addr::new(192, 0, 2, 9);
    for change in ["ip table del 5", "ip table add 8", "ip table del 6", "ip table del 8"] {
        lab.ok(change);
        lab.receive(2, vec![framed(2, 3, &udp(ip(0, 3), dst, 8).build())]);
        sound(2, 3, &lab.sent_one(2));
    }
    lab.close();
}

#[test]
fn subnets_of_one_and_two_addresses() {
    let mut lab = bare().start();
    lab.ok("ip table unreachables 0 on\n\
         set interface ip address test0 10.0.0.1/24\n\
         set interface ip address test1 10.0.1.0/31\n\
         set interface ip address test2 10.0.2.1/32");
    lab.neighbor(0, ip(0, 2), host_mac(0, 2));
    // The only other host of a subnet is asked for at once, and again when the interface comes up.
    let ask = Packet::arp_request(our_mac(1), ip(1, 0), ip(1, 1)).build();
    lab.until("a request", |lab| lab.sent_frames() > 0);
    assert!(lab.sent_one(1).starts_with(&ask[..42]));
    lab.up(1, false);
    lab.up(1, true);
    lab.until("a request", |lab| lab.sent_frames() > 0);
    assert!(lab.sent_one(1).starts_with(&ask[..42]));
    lab.neighbor(1, ip(1, 1), host_mac(1, 1));
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(1, 1), 8));
    sound(1, 1, &lab.sent_one(1));
    for own in [ip(1, 0), ip(2, 1)] {
        lab.receive_packet(0, 2, Packet::new().ipv4(ip(0, 2), own).icmp_echo_request(1, 2));
        assert_eq!(sound(0, 2, &lab.sent_one(0)).src(), own);
    }
    // A /32 address connects nothing else.
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(2, 2), 8));
    let e = icmp_error(0, 2, &lab.sent_one(0));
    assert_eq!((e.kind, e.code), (3, 0));
    // A host route over it works.
    lab.ok("ip route add 10.0.2.2/32 via 10.0.2.2 test2");
    lab.neighbor(2, ip(2, 2), host_mac(2, 2));
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(2, 2), 8));
    sound(2, 2, &lab.sent_one(2));
    lab.close();
}

#[test]
fn an_unknown_neighbour_is_asked_for_and_the_packet_follows() {
    let mut lab = router();
    let packet = udp(ip(0, 2), ip(1, 77), 8);
    lab.deliver(0, vec![framed(0, 2, &packet.build())]);
    let mut sent = Vec::new();
    lab.until("a request", |lab| {
        sent = lab.sent();
        !sent.is_empty()
    });
    let request = ArpView::parse(&sent[0].1[14..]).expect("a request").repr();
    assert_eq!((request.sender_ip, request.target_ip), (ip(1, 1), ip(1, 77)));
    let reply: ArpRepr = request.reply(host_mac(1, 77));
    let frame = Packet::arp_reply(host_mac(1, 77), &request).padded().build();
    assert_eq!(reply.sender_ip, ip(1, 77));
    lab.receive(1, vec![frame]);
    lab.until("the packet", |lab| lab.sent_frames() > 0);
    sound(1, 77, &lab.sent_one(1));
    let fib = lab.cli("show ip fib 10.0.1.77");
    assert!(fib.contains("10.0.1.77/32") && fib.contains("adjacency"), "{fib}");
    // A request for our address is answered.
    let ask = Packet::arp_request(host_mac(0, 5), ip(0, 5), ip(0, 1)).padded().build();
    lab.receive(0, vec![ask]);
    let answer = lab.sent_one(0);
    let answer = ArpView::parse(&answer[14..]).expect("a reply").repr();
    assert_eq!((answer.sender_mac, answer.sender_ip), (our_mac(0), ip(0, 1)));
    lab.close();
}

#[test]
fn malformed_headers_each_have_their_counter() {
    let mut lab = router();
    let good = udp(ip(0, 2), ip(1, 2), 20).build();
    let summed = |mut p: Vec<u8>, change: &dyn Fn(&mut Vec<u8>)| {
        change(&mut p);
        let n = usize::from(p[0] & 15) * 4;
        if (20..=p.len()).contains(&n) {
            p[10..12].fill(0);
            let sum = checksum::checksum(&p[..n]);
            p[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        p
    };
    let with = |change: &dyn Fn(&mut Vec<u8>)| summed(good.clone(), change);
    let src = |a: [u8; 4]| with(&|p| p[12..16].copy_from_slice(&a));
    let dst = |a: [u8; 4]| with(&|p| p[16..20].copy_from_slice(&a));
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("ip4 length < 20 bytes", good[..19].to_vec()),
        ("ip4 length < 20 bytes", Vec::new()),
        ("ip4 version != 4", with(&|p| p[0] = 0x65)),
        ("ip4 version != 4", with(&|p| p[0] = 0x05)),
        ("bad ip4 header length", with(&|p| p[0] = 0x44)),
        ("bad ip4 header length", with(&|p| p[0] = 0x4f)),
        ("ip4 length > l2 length", with(&|p| p[2..4].copy_from_slice(&[0, 100]))),
        ("ip4 length > l2 length", with(&|p| p[2..4].copy_from_slice(&[0, 19]))),
        ("bad ip4 checksum", {
            let mut p = good.clone();
            p[10] ^= 1;
            p
        }),
        ("ip4 fragment offset == 1", udp(ip(0, 2), ip(1, 2), 8).fragment(8, false).build()),
        ("ip4 fragment offset == 1", udp(ip(0, 2), ip(1, 2), 8).fragment(8, true).build()),
        (
            "ip4 fragment ends behind 65535 bytes",
            udp(ip(0, 2), ip(1, 2), 580).fragment(64_984, false).build(),
        ),
        ("ip4 multicast source address", src([224, 0, 0, 1])),
        ("ip4 loopback source address", src([127, 0, 0, 1])),
        ("ip4 source address in 0.0.0.0/8", src([0, 0, 0, 0])),
        ("ip4 class E source address", src([255, 255, 255, 255])),
        ("ip4 loopback destination address", dst([127, 0, 0, 1])),
        ("ip4 destination address in 0.0.0.0/8", dst([0, 0, 0, 1])),
    ];
    let mut seen: HashMap<&str, u64> = HashMap::new();
    for (text, packet) in &cases {
        lab.receive(0, vec![framed(0, 2, packet)]);
        *seen.entry(text).or_default() += 1;
        assert_eq!(lab.count("ip4-input", text), seen[text], "{text}: {packet:02x?}");
        assert!(lab.sent().is_empty(), "{text}");
    }
    assert_eq!(lab.dropped(), cases.len() as u64);
    lab.close();
}

#[test]
fn an_interface_without_an_address_drops_ipv4() {
    let mut lab = bare().start();
    lab.ok("set interface ip address test1 10.0.1.1/24");
    lab.neighbor(1, ip(1, 2), host_mac(1, 2));
    let reason = "ip4 is not enabled on the interface";
    let packets = |n: usize| vec![framed(0, 2, &udp(ip(0, 2), ip(1, 2), 8).build()); n];
    let mut dropped = 0;
    let mut passes = |lab: &mut Lab, yes: bool| {
        for n in [1, 40] {
            lab.receive(0, packets(n));
            dropped += if yes { 0 } else { n as u64 };
            assert_eq!(lab.sent().len(), if yes { n } else { 0 });
            assert_eq!(lab.count("ip4-not-enabled", reason), dropped);
        }
    };
    passes(&mut lab, false);
    lab.ok("enable ip4 interface test0");
    passes(&mut lab, true);
    // An address means the same, and outlives it.
    lab.ok("set interface ip address test0 10.0.0.1/24\ndisable ip4 interface test0");
    passes(&mut lab, true);
    lab.ok("set interface ip address del test0 10.0.0.1/24");
    passes(&mut lab, false);
    assert!(lab.cli("enable ip4 interface test9").contains("interface"));
    lab.close();
}

#[test]
fn frames_for_others_and_of_other_kinds_are_dropped() {
    let mut lab = router();
    let packet = udp(ip(0, 2), ip(1, 2), 8).build();
    let mut other = framed(0, 2, &packet);
    other[5] ^= 1;
    let mut kind = framed(0, 2, &packet);
    kind[12..14].copy_from_slice(&[0x88, 0xb5]);
    lab.receive(0, vec![other, kind, vec![1, 2, 3]]);
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ethernet-input", "l3 mac mismatch"), 1);
    assert_eq!(lab.count("ethernet-input", "unknown ethernet type"), 1);
    assert_eq!(lab.count("ethernet-input", "frame too short"), 1);
    // Subnet broadcasts and multicast are not forwarded.
    for dst in [Ipv4Addr::new(10, 0, 1, 255), [10, 0, 1, 0].into(), [255; 4].into()] {
        lab.receive_packet(0, 2, udp(ip(0, 2), dst, 8));
        assert!(lab.sent().is_empty(), "{dst}");
    }
    assert_eq!(lab.count("ip4-lookup", "drop route"), 3);
    lab.receive_packet(0, 2, udp(ip(0, 2), [224, 0, 0, 5].into(), 8));
    assert_eq!(lab.count("ip4-lookup", "multicast routing not supported"), 1);
    assert!(lab.sent().is_empty());
    lab.close();
}
