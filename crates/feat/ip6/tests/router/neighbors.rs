//! Neighbours of real interfaces.

use crate::{bare, link_local, router};
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};
use thalweg_cli::{Output, Task, TaskPoll};
use thalweg_device::testing::ip6::{
    at, framed, framed_to, icmp_packet, ip, link, sound, to_group, udp,
};
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_feat_neighbor::{Neighbors, arping};
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::nd::{Message, emit_advertisement, emit_solicitation, flag, solicited_node};

/// A solicitation by a host.
fn solicitation(src: Ipv6Addr, target: Ipv6Addr, mac: MacAddr) -> Vec<u8> {
    let (dst, mut message) = (solicited_node(target), [0; 32]);
    emit_solicitation(&src, &dst, target, mac, &mut message).unwrap();
    to_group(mac, &icmp_packet((src, dst), 255, &[], &message))
}

/// An advertisement by a host to the router.
fn advertisement(n: u8, dst: Ipv6Addr, target: Ipv6Addr, mac: MacAddr) -> Vec<u8> {
    let mut message = [0; 32];
    let flags = flag::SOLICITED | flag::OVERRIDE;
    emit_advertisement(&target, &dst, flags, target, mac, &mut message).unwrap();
    framed_to(our_mac(n), mac, &icmp_packet((target, dst), 255, &[], &message))
}

/// Flags and target of an advertisement in a frame.
fn advertised(frame: &[u8]) -> (Ipv6Addr, Ipv6Addr, u32, Ipv6Addr) {
    let ip = Ipv6View::parse(&frame[14..]).unwrap();
    assert_eq!(ip.hop_limit(), 255);
    let icmp = Icmp6View::parse(ip.payload()).unwrap();
    assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
    let Some(Ok(message)) = Message::parse(&icmp) else { panic!("{icmp:?}") };
    let Message::NeighborAdvertisement { flags, target, .. } = message else {
        panic!("{message:?}");
    };
    assert!(message.link_layer().is_some());
    (ip.src(), ip.dst(), flags, target)
}

/// The MAC address of a neighbour, if resolved.
fn known(lab: &Lab, n: u8, ip: Ipv6Addr) -> Option<MacAddr> {
    lab.c.state::<Neighbors>().borrow().find(lab.sw_if(n), ip.into())?.mac
}

#[test]
fn solicitations_are_answered_and_learned_from() {
    let mut lab = router();
    for (src, target) in [(ip(0, 9), ip(0, 1)), (link(8), ip(0, 1)), (link(9), link_local(&lab, 0))]
    {
        lab.receive(0, vec![solicitation(src, target, host_mac(0, 9))]);
        let out = lab.sent_one(0);
        assert_eq!(out[..6], host_mac(0, 9).0);
        let want = (target, src, flag::SOLICITED | flag::OVERRIDE, target);
        assert_eq!(advertised(&out), want);
        lab.turn();
        assert_eq!(known(&lab, 0, src), Some(host_mac(0, 9)));
    }
    // A learned neighbour has a host route; one of the link has none.
    let text = lab.cli("show ip6 fib");
    assert!(text.contains("2001:db8::9/128") && !text.contains("fe80::99:9"), "{text}");
    // One that tests its address is answered, and not learned.
    lab.receive(
        0,
        vec![{
            let (dst, mut message) = (solicited_node(ip(0, 1)), [0; 24]);
            message[0] = 135;
            message[8..24].copy_from_slice(&ip(0, 1).octets());
            let unspecified = Ipv6Addr::UNSPECIFIED;
            to_group(host_mac(0, 7), &icmp_packet((unspecified, dst), 255, &[], &message))
        }],
    );
    let out = lab.sent_one(0);
    assert_eq!(advertised(&out), (ip(0, 1), at("ff02::1"), flag::OVERRIDE, ip(0, 1)));
    assert_eq!(out[..6], [0x33, 0x33, 0, 0, 0, 1]);
    lab.close();
}

#[test]
fn what_is_not_for_us_or_came_from_afar_is_not_answered() {
    let mut lab = router();
    let mut far = solicitation(ip(0, 9), ip(0, 1), host_mac(0, 9));
    far[14 + 7] = 254;
    let own = link_local(&lab, 0);
    for (frame, reason) in [
        (far, "neighbor solicitation with a hop limit below 255"),
        (
            solicitation(ip(1, 9), ip(0, 1), host_mac(0, 9)),
            "neighbor solicitations from source not on link",
        ),
        (solicitation(own, ip(0, 1), host_mac(0, 9)), "IP6 source address matches local interface"),
    ] {
        lab.receive(0, vec![frame]);
        assert_eq!(
            lab.count("icmp6-neighbor-solicitation", reason),
            1,
            "{reason}\n{}",
            lab.cli("show errors")
        );
        assert!(lab.sent().is_empty());
    }
    // A host that asks for an address of another group is not heard at all.
    lab.receive(0, vec![solicitation(ip(0, 9), ip(0, 77), host_mac(0, 9))]);
    assert!(lab.sent().is_empty());
    lab.turn();
    assert_eq!(known(&lab, 0, ip(0, 9)), None);
    lab.close();
}

/// RFC 6980 section 5: filters do not see what is in fragments.
#[test]
fn messages_in_fragments_are_dropped() {
    let mut lab = router();
    let whole = solicitation(link(9), ip(0, 1), host_mac(0, 9));
    let header = [58, 0, 0, 0, 0, 0, 0, 9];
    let mut framed = [&whole[..54], &header, &whole[54..]].concat();
    framed[19] += 8;
    framed[20] = 44;
    lab.receive(0, vec![framed]);
    lab.turn();
    assert!(lab.sent().is_empty() && known(&lab, 0, link(9)).is_none());
    let text = "neighbor solicitation in a fragment";
    assert_eq!(lab.count("icmp6-neighbor-solicitation", text), 1);
    lab.receive(0, vec![whole]);
    lab.turn();
    assert_eq!(known(&lab, 0, link(9)), Some(host_mac(0, 9)));
    lab.close();
}

#[test]
fn an_unknown_neighbour_is_asked_for_and_packets_wait() {
    let mut lab = router();
    lab.deliver(0, vec![framed(0, 2, &udp(ip(0, 2), ip(1, 9), 33).build())]);
    lab.until("a solicitation", |lab| lab.sent_frames() > 0);
    let asked = lab.sent_one(1);
    let v = Ipv6View::parse(&asked[14..]).unwrap();
    assert_eq!((v.src(), v.dst()), (link_local(&lab, 1), solicited_node(ip(1, 9))));
    assert_eq!(asked[..6], [0x33, 0x33, 0xff, 0, 0, 9]);
    lab.turn();
    let answer = advertisement(1, link_local(&lab, 1), ip(1, 9), host_mac(1, 9));
    lab.receive(1, vec![answer]);
    lab.turn();
    let out = lab.sent_one(1);
    assert_eq!(sound(1, 9, &out).dst(), ip(1, 9));
    // The next one does not wait.
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), ip(1, 9), 34).build())]);
    sound(1, 9, &lab.sent_one(1));
    lab.close();
}

#[test]
fn next_hops_may_be_link_local() {
    let mut lab = router();
    lab.ok(&format!("ip route add 2001:db8:f::/48 via {} test1", link(5)));
    lab.deliver(0, vec![framed(0, 2, &udp(ip(0, 2), at("2001:db8:f::1"), 33).build())]);
    lab.until("a solicitation", |lab| lab.sent_frames() > 0);
    let asked = lab.sent_one(1);
    assert_eq!(Ipv6View::parse(&asked[14..]).unwrap().dst(), solicited_node(link(5)));
    let answer = advertisement(1, link_local(&lab, 1), link(5), host_mac(1, 5));
    lab.receive(1, vec![answer]);
    lab.turn();
    let out = lab.sent_one(1);
    assert_eq!(sound(1, 5, &out).dst(), at("2001:db8:f::1"));
    lab.close();
}

#[test]
fn link_local_addresses_can_be_chosen() {
    let mut lab = bare().start();
    let text = lab.cli("show ip6 interface test0");
    assert_eq!(text, "IP6 disabled\n");
    lab.ok("set interface ip address test0 fe80::77/128");
    assert_eq!(link_local(&lab, 0), at("fe80::77"));
    let text = lab.cli("show ip6 interface test0");
    assert!(text.contains("    fe80::77\n") && text.contains("    ff02::1:ff00:77\n"), "{text}");
    lab.receive(0, vec![solicitation(link(9), at("fe80::77"), host_mac(0, 9))]);
    assert_eq!(advertised(&lab.sent_one(0)).3, at("fe80::77"));
    lab.ok("set interface ip address del test0 fe80::77/128");
    let own = link_local(&lab, 0);
    assert!(own.segments()[6] >> 8 == 0xfe00 >> 8, "{own}");
    let error = lab.cli(&format!("set interface ip address del test0 {own}/128"));
    assert!(error.contains("by itself"), "{error}");
    lab.close();
}

/// A message without a link-layer address teaches the frame's source: bytes in its addresses that
/// look like a tag are no tag.
#[test]
fn senders_without_an_option_are_learned_by_their_frames() {
    for (at, byte) in [(2, 0x81), (2, 0x88), (2, 0x91), (4, 0x81)] {
        let mut lab = router();
        let mut mac = host_mac(0, 7);
        mac.0[at] = byte;
        lab.deliver(1, vec![framed(1, 2, &udp(ip(1, 2), ip(0, 7), 20).build())]);
        lab.until("a solicitation", |lab| lab.sent_frames() > 0);
        lab.sent_one(0);
        lab.turn();
        let (us, mut message) = (link_local(&lab, 0), [0; 24]);
        message[0] = 136;
        message[4..8].copy_from_slice(&flag::SOLICITED.to_be_bytes());
        message[8..].copy_from_slice(&ip(0, 7).octets());
        let answer = icmp_packet((ip(0, 7), us), 255, &[], &message);
        lab.receive(0, vec![framed_to(our_mac(0), mac, &answer)]);
        lab.turn();
        assert_eq!(lab.sent_one(0)[..6], mac.0, "byte {at} of {mac}");
        lab.close();
    }
}

#[test]
fn arping_counts_advertisements() {
    let mut lab = router();
    let (ip, mac) = (ip(0, 9), host_mac(0, 9));
    let second = Duration::from_secs(1);
    let (sw_if, gratuitous) = (lab.sw_if(0), false);
    let request = arping::Request { ip: ip.into(), sw_if, gratuitous, repeat: 2, interval: second };
    let mut session = arping::start(&mut lab.c, request).unwrap();
    let (now, mut out) = (Instant::now(), Output::new());
    assert!(matches!(session.poll(&mut lab.c, now, &mut out), TaskPoll::At(_)));
    lab.settle();
    let asked = lab.sent_one(0);
    assert_eq!(asked[..6], MacAddr::from_ipv6_multicast(solicited_node(ip)).0);
    // Each answer counts, those for others do not.
    let us = link_local(&lab, 0);
    lab.receive(0, vec![advertisement(0, us, ip, mac), advertisement(0, us, ip, mac)]);
    lab.receive(0, vec![advertisement(0, us, at("2001:db8::8"), host_mac(0, 8))]);
    lab.settle();
    assert!(matches!(session.poll(&mut lab.c, now + second, &mut out), TaskPoll::Done));
    assert_eq!(session.answers(), (2, mac));
    lab.settle();
    assert_eq!(lab.sent_one(0), asked);
    assert!(!arping::is_running(&lab.c, sw_if));
    // An announcement goes to all nodes.
    let announced = arping::Request { gratuitous: true, repeat: 1, ..request };
    let mut session = arping::start(&mut lab.c, announced).unwrap();
    assert!(matches!(session.poll(&mut lab.c, now, &mut out), TaskPoll::Done));
    lab.settle();
    let sent = lab.sent_one(0);
    assert_eq!(sent[..6], [0x33, 0x33, 0, 0, 0, 1]);
    assert_eq!(advertised(&sent).3, ip);
    lab.close();
}

#[test]
fn a_host_does_not_take_what_a_longer_route_leads_elsewhere() {
    let mut lab = router();
    lab.ok("ip route add 2001:db8::80/121 via 2001:db8:0:1::2 test1\nip route add ::/0 via test0");
    lab.ok("ip route add 2001:db8:0:55::/64 via 2001:db8:0:1::2 test1");
    lab.c.sync();
    for address in [at("2001:db8::99"), at("2001:db8:0:55::9"), ip(1, 3)] {
        let before = lab.c.state::<Neighbors>().borrow().len();
        lab.until("the neighbour", |lab| {
            lab.receive(0, vec![solicitation(address, ip(0, 1), host_mac(0, 66))]);
            lab.c.state::<Neighbors>().borrow().len() > before
        });
        lab.sent();
        let flow = |n: u16| framed(2, 2, &Packet::new().ipv6(ip(2, 2), address).udp(n, 9).build());
        lab.receive(2, (0..32).map(flow).collect());
        let by: Vec<u8> = lab.sent().iter().map(|(i, _)| lab.number(*i)).collect();
        assert_eq!(by, [1; 32], "{address}");
    }
    lab.ok("ip route del 2001:db8::80/121");
    let packet = udp(ip(2, 2), at("2001:db8::99"), 8).build();
    lab.receive(2, vec![framed(2, 2, &packet)]);
    assert_eq!(lab.sent_one(0)[..6], host_mac(0, 66).0);
    lab.close();
}

/// A neighbour that an operator has written keeps its address from what hosts of other interfaces
/// say, in whatever order they came, and whichever subnet it is.
#[test]
fn a_written_neighbour_beats_those_that_are_heard() {
    let written = host_mac(0, 9);
    for (written_first, heard_on) in [(true, 1), (false, 1), (true, 3), (false, 3)] {
        let mut lab = bare().interfaces(4).start();
        lab.ok("set interface ip address test3 2001:db8::1/64");
        lab.ok("set interface ip address test2 2001:db8:0:2::1/64");
        lab.ok("set interface unnumbered test0 use test3");
        lab.ok("set interface unnumbered test1 use test3");
        lab.c.sync();
        let write = format!("set ip neighbor test0 {} {written} static", ip(0, 9));
        if written_first {
            lab.ok(&write);
        }
        lab.until("the neighbour", |lab| {
            lab.receive(heard_on, vec![solicitation(ip(0, 9), ip(0, 1), host_mac(heard_on, 66))]);
            known(lab, heard_on, ip(0, 9)).is_some()
        });
        if !written_first {
            lab.ok(&write);
        }
        lab.sent();
        let packet = udp(ip(2, 2), ip(0, 9), 8).build();
        lab.receive(2, vec![framed(2, 2, &packet)]);
        assert_eq!(lab.sent_one(0)[..6], written.0);
        lab.ok(&format!("set ip neighbor del test0 {}", ip(0, 9)));
        lab.receive(2, vec![framed(2, 2, &packet)]);
        assert_eq!(lab.sent_one(heard_on)[..6], host_mac(heard_on, 66).0);
        lab.close();
    }
}
