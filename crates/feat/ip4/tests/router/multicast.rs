//! Packets to multicast groups by routes that only name an interface: the group determines the MAC
//! address (RFC 1112 section 6.4), and nobody is asked for it.

use crate::{router, setup};
use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::{framed, icmp_error, ip, udp};
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_device::{TagMatch, VlanTag, interface};
use thalweg_fib::{Forwarding, LinkType, Peer};
use thalweg_graph::Inject;
use thalweg_wire::build::Packet;
use thalweg_wire::ipv4;

/// A group whose MAC address lacks the topmost bits.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 129, 2, 3);
const GROUP_MAC: [u8; 6] = [1, 0, 0x5e, 1, 2, 3];
const OTHER: Ipv4Addr = Ipv4Addr::new(232, 0, 0, 9);
const OTHER_MAC: [u8; 6] = [1, 0, 0x5e, 0, 0, 9];

fn lab() -> Lab {
    let mut lab = setup().buffers(4096).start();
    lab.ok("ip route add 224.0.0.0/4 via test1");
    lab
}

/// Packets from host 2 on `test0` to groups.
fn frames(many: u8) -> Vec<Vec<u8>> {
    let to = |i| if i % 3 == 0 { OTHER } else { GROUP };
    (0..many).map(|i| framed(0, 2, &udp(ip(0, 2), to(i), usize::from(i)).build())).collect()
}

/// Checks that a frame is as a router sends it to a group; returns the packet in it.
fn to_group(frame: &[u8], tags: &[u8]) -> Vec<u8> {
    let packet = &frame[14 + tags.len()..];
    let view = ipv4::check(packet).expect("a sound header");
    let mac = if view.dst() == GROUP { GROUP_MAC } else { OTHER_MAC };
    assert_eq!(frame[..14 + tags.len()], [&mac, &our_mac(1).0, tags, &[8, 0]].concat());
    packet.to_vec()
}

#[test]
fn a_group_determines_the_mac_address() {
    let mut lab = lab();
    for many in [1, 2, 60] {
        lab.receive(0, frames(many));
        let sent = lab.sent();
        assert_eq!(sent.len(), usize::from(many), "{}", lab.cli("show errors"));
        for (sw_if, frame) in sent {
            assert_eq!(sw_if, lab.sw_if(1));
            let packet = to_group(&frame, &[]);
            assert_eq!(ipv4::check(&packet).expect("a header").ttl(), 63);
        }
    }
    // The route of one group, and the neighbour's MAC address where the route names one.
    lab.ok("ip route add 232.0.0.9/32 via 10.0.2.2 test2");
    lab.receive_packet(0, 2, udp(ip(0, 2), OTHER, 20));
    assert_eq!(lab.sent_one(2)[..6], host_mac(2, 2).0);
    let text = lab.cli("show ip fib 224.0.0.0/4");
    assert!(text.contains("ipv4-mcast: test1: mtu:") && text.contains(" 01005e000000"), "{text}");
    // The interface's own MAC address changes, and its state.
    lab.ok("set interface mac address test1 02:00:00:00:77:01");
    lab.receive_packet(0, 2, udp(ip(0, 2), GROUP, 20));
    assert_eq!(lab.sent_one(1)[..12], [1, 0, 0x5e, 1, 2, 3, 2, 0, 0, 0, 0x77, 1]);
    lab.ok("set interface state test1 down");
    lab.receive_packet(0, 2, udp(ip(0, 2), GROUP, 20));
    assert!(lab.sent().is_empty());
    lab.ok("set interface state test1 up\nip route del 224.0.0.0/4 via test1");
    lab.receive_packet(0, 2, udp(ip(0, 2), GROUP, 20));
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip4-lookup", "multicast routing not supported"), 1);
    assert_eq!(lab.count("ip4-glean", "packets held for ARP"), 0);
    lab.close();
}

/// All groups on an interface share one adjacency, in any table; a unicast route to the same
/// interface has another.
#[test]
fn an_interface_has_one_adjacency_for_all_groups() {
    let mut lab = lab();
    let count = |lab: &Lab| lab.c.state::<Forwarding>().borrow().len();
    let before = count(&lab);
    lab.ok("ip route add 225.1.0.0/16 via test1\nip route add 226.0.0.1/32 via test1");
    assert_eq!(count(&lab), before);
    lab.ok("ip route add 198.51.100.0/24 via test1");
    let forwarding = lab.c.state::<Forwarding>();
    let of = |peer| {
        let mut f = forwarding.borrow_mut();
        let dpo = f.adjacency(&lab.c, lab.sw_if(1), LinkType::Ip4, peer).expect("an adjacency");
        f.release(&lab.c, dpo);
        dpo
    };
    let (group, subnet) = (of(Peer::Multicast), of(Peer::Glean));
    assert_ne!(group, subnet);
    let text = lab.cli("show ip fib 226.0.0.1/32");
    assert!(text.contains("ipv4-mcast"), "{text}");
    lab.ok("ip route del 225.1.0.0/16 via test1\nip route del 226.0.0.1/32 via test1
            ip route del 198.51.100.0/24 via test1\nip route del 224.0.0.0/4 via test1");
    lab.close();
}

/// Half of the groups of a prefix may not be groups: such a route is a unicast one.
#[test]
fn a_shorter_prefix_is_not_multicast() {
    let mut lab = router();
    lab.ok("ip route add 192.0.0.0/2 via test1");
    lab.receive_packet(0, 2, udp(ip(0, 2), GROUP, 20));
    let sent = lab.sent();
    assert!(sent.iter().all(|(_, frame)| frame[12..14] != [8, 0]), "{sent:02x?}");
    lab.close();
}

#[test]
fn groups_of_the_link_stay_there_and_no_packet_returns_to_its_link() {
    let mut lab = lab();
    let link = Ipv4Addr::new(224, 0, 0, 251);
    let count = |lab: &Lab, reason| lab.count("ip4-rewrite", reason);
    for (n, many) in [1, 40].into_iter().enumerate() {
        lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), link, 20).build()); many]);
        let seen = count(&lab, "link-local address: not forwarded");
        assert_eq!(seen, [1, 41][n]);
        lab.receive(1, vec![framed(1, 2, &udp(ip(1, 2), GROUP, 20).build()); many]);
        assert_eq!(count(&lab, "multicast packet would return to its link"), [1, 41][n]);
    }
    // No ICMP error about a packet to a group (RFC 1122 section 3.2.2).
    lab.receive_packet(0, 2, udp(ip(0, 2), GROUP, 20).ttl(1));
    lab.ok("set interface mtu packet 576 test1");
    lab.receive_packet(0, 2, udp(ip(0, 2), GROUP, 900).dont_fragment());
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip4-icmp-error", "icmp errors sent"), 0);
    // Errors about other packets are sent.
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(1, 2), 900).dont_fragment());
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).kind, 3);
    lab.close();
}

/// Packets that the router itself sends leave, also to groups of its link.
#[test]
fn a_local_sender_reaches_a_group() {
    let mut lab = lab();
    let node = lab.c.node("ip4-lookup").expect("the node");
    for group in [GROUP, [224, 0, 0, 5].into()] {
        let bytes = udp(ip(1, 1), group, 20).ttl(1).build();
        lab.c.inject(0, Inject { node, bytes: bytes.clone(), ..Inject::default() });
        lab.until("the packet", |lab| lab.sent_frames() == 1);
        let frame = lab.sent_one(1);
        let [_, b, c, d] = group.octets();
        assert_eq!(frame[..6], [1, 0, 0x5e, b & 0x7f, c, d]);
        assert_eq!(frame[14..], bytes, "with its TTL");
    }
    lab.close();
}

#[test]
fn groups_behind_tags_fragments_and_output_features() {
    let mut lab = lab();
    let (outer, inner) = (VlanTag::dot1ad(5), VlanTag::dot1q(7));
    let port = lab.sw_if(1);
    for (id, matches) in [
        (11, TagMatch::Outer { tag: inner, exact: true }),
        (12, TagMatch::Pair { outer, inner, exact: true }),
    ] {
        let sub = interface::create_sub(&mut lab.c, port, id, matches).expect("a sub-interface");
        lab.ok(&format!(
            "set interface state test1.{id} up
             set interface ip address test1.{id} 10.9.{id}.1/24
             set interface mtu packet 576 test1.{id}
             ip route replace 224.0.0.0/4 via test1.{id}"
        ));
        for feature in [false, true] {
            lab.c.enable_feature("ip4-output", "b-output", sub, feature).expect("a feature");
            for many in [1, 40] {
                lab.receive(0, frames(many));
                let sent = lab.sent();
                assert_eq!(sent.len(), usize::from(many), "{}", lab.cli("show errors"));
                let tags = matches.tags().expect("tags");
                sent.iter().for_each(|(_, frame)| _ = to_group(frame, tags.as_slice()));
            }
            let long = udp(ip(0, 2), GROUP, 1200).id(9);
            lab.receive_packet(0, 2, long);
            let sent = lab.sent();
            assert_eq!(sent.len(), 3);
            for (_, frame) in sent {
                assert_eq!(frame[..6], GROUP_MAC);
            }
        }
        lab.c.enable_feature("ip4-output", "b-output", sub, false).expect("a feature");
    }
    lab.close();
}

/// On a link without MAC addresses, packets to groups go to the other end, like all others.
#[test]
fn groups_on_a_point_to_point_link() {
    let mut lab = lab();
    lab.tunnel(7);
    lab.ok("set interface ip address test7 10.7.0.1/24\nip route replace 224.0.0.0/4 via test7");
    for (to, many) in
        [(GROUP, 1), (GROUP, 40), ([10, 7, 0, 9].into(), 1), ([10, 7, 0, 9].into(), 40)]
    {
        let packet = udp(ip(0, 2), to, 20);
        lab.receive(0, vec![framed(0, 2, &packet.build()); many]);
        let sent = lab.sent();
        assert_eq!(sent.len(), many, "{}", lab.cli("show errors"));
        for (sw_if, bytes) in sent {
            assert_eq!(sw_if, lab.sw_if(7));
            let view = ipv4::check(&bytes).expect("no link header");
            assert_eq!((view.dst(), view.ttl()), (to, 63));
        }
    }
    lab.close();
}

/// An interface without an address does not speak IPv4, whoever its packets are for.
#[test]
fn packets_to_groups_need_an_interface_that_speaks_ipv4() {
    let mut lab = setup().start();
    lab.ok("ip route add 239.1.0.0/16 via 10.0.1.2 test1\nip route add 239.2.0.0/16 via test1");
    lab.ok("ip route add 239.3.0.1/32 via local");
    let pass = |lab: &mut Lab| {
        for group in [[239, 1, 0, 1], [239, 2, 0, 1], [239, 3, 0, 1]] {
            let mut ask = Packet::new().ipv4(ip(0, 2), group.into()).icmp_echo_request(1, 1);
            ask = ask.payload(b"hello");
            lab.receive(0, vec![framed(0, 2, &ask.build())]);
        }
        lab.sent().len()
    };
    assert_eq!(pass(&mut lab), 3);
    lab.ok("set interface ip address del test0 10.0.0.1/24");
    assert_eq!(pass(&mut lab), 0);
    assert_eq!(lab.count("ip4-not-enabled", "ip4 is not enabled on the interface"), 3);
    lab.ok("enable ip4 interface test0");
    // Without an address there is none to answer from.
    assert_eq!(pass(&mut lab), 2);
    lab.close();
}
