//! Punted packets that leave by a redirect.

use crate::{router, setup};
use thalweg_device::testing::ip4::{framed, icmp_error, ip};
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv4::IcmpRepr;
use thalweg_wire::ipv4::Ipv4View;

/// A datagram to the router that nobody listens for.
fn unheard() -> Packet {
    Packet::new().ipv4(ip(0, 2), ip(0, 1)).udp(9, 3784).payload(&[0; 30])
}

/// Receives a packet by `test0` and expects it at a host behind another interface, one hop on.
fn arrives(lab: &mut Lab, packet: &Packet, (n, host): (u8, u8)) {
    lab.receive_packet(0, 2, packet.clone());
    let sent = lab.sent_one(n);
    assert_eq!(sent[..12], [host_mac(n, host).0, our_mac(n).0].concat());
    let (was, is) = (packet.build(), &sent[14..]);
    let is_ip = Ipv4View::parse(is).expect("an IPv4 packet");
    assert_eq!(is_ip.ttl(), was[8].max(2) - 1);
    assert_eq!(is[12..], was[12..], "nothing but the TTL changes");
}

#[test]
fn what_nothing_takes_leaves_by_the_paths_of_its_interface() {
    let mut lab = router();
    let own = || Packet::new().ipv4(ip(0, 2), ip(0, 1));
    let packets = [
        unheard(),
        unheard().ttl(1),
        own().tcp(9, 179),
        own().protocol(89).payload(&[7; 30]),
        own().icmp(IcmpRepr::unreachable(1)).payload(&[0; 28]),
    ];
    lab.ok("ip punt redirect add rx test0 via 10.0.1.2 test1");
    for packet in &packets {
        arrives(&mut lab, packet, (1, 2));
    }
    assert_eq!(lab.c.interface_totals(lab.sw_if(0)).punt, packets.len() as u64);
    // The router answers what is for it, and goes on to refuse what comes elsewhere.
    lab.receive_packet(0, 2, own().icmp_echo_request(1, 2));
    lab.sent_one(0);
    lab.receive_packet(2, 2, Packet::new().ipv4(ip(2, 2), ip(2, 1)).udp(9, 3784).payload(&[1]));
    assert_eq!(icmp_error(2, 2, &lab.sent_one(2)).code, 3);
    // The interface's redirect comes before the one of all, and a new one replaces the old.
    lab.ok("ip punt redirect add rx all via 10.0.2.3");
    arrives(&mut lab, &unheard(), (1, 2));
    lab.ok("ip punt redirect add rx test0 via 10.0.1.4 test1");
    arrives(&mut lab, &unheard(), (1, 4));
    lab.ok("ip punt redirect del rx test0");
    arrives(&mut lab, &unheard(), (2, 3));
    let text = lab.cli("show ip punt redirect");
    assert!(text.contains(" rx all via:\n   10.0.2.3\n forwarding\n"), "{text}");
    lab.ok("ip punt redirect del rx all");
    lab.receive_packet(0, 2, unheard());
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).code, 3);
    assert_eq!(lab.cli("show ip punt redirect").trim(), "");
    lab.close();
}

#[test]
fn a_redirect_follows_routes_and_interfaces() {
    let mut lab = router();
    // A next hop that nothing leads to yet.
    lab.ok("ip punt redirect add rx all via 192.0.2.1");
    lab.receive_packet(0, 2, unheard());
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip4-punt-redirect", "next hop of the route leads nowhere"), 1);
    lab.ok("ip route add 192.0.2.1/32 via 10.0.1.3");
    arrives(&mut lab, &unheard(), (1, 3));
    lab.ok("ip route replace 192.0.2.1/32 via 10.0.2.4");
    arrives(&mut lab, &unheard(), (2, 4));
    // Packets take the paths that are left.
    lab.ok("ip punt redirect add rx all via 10.0.1.2 test1 via 10.0.2.2 test2");
    lab.up(1, false);
    arrives(&mut lab, &unheard(), (2, 2));
    lab.close();
}

#[test]
fn a_redirect_to_the_router_itself_ends() {
    let mut lab = router();
    lab.ok("ip table add 7\nip route add table 7 10.0.0.1/32 via local");
    let (back, nowhere) =
        ("punt redirect leads to the router itself", "next hop of the route leads nowhere");
    for (via, why) in
        [("10.0.1.1", nowhere), ("lookup in table 0", back), ("lookup in table 7", back)]
    {
        lab.ok(&format!("ip punt redirect add rx all via {via}"));
        let before = lab.count("ip4-punt-redirect", why);
        lab.receive_packet(0, 2, unheard());
        assert!(lab.sent().is_empty());
        assert_eq!(lab.count("ip4-punt-redirect", why), before + 1, "{via}");
    }
    lab.close();
}

#[test]
fn redirects_that_cannot_be_are_refused() {
    let mut lab = router();
    for (words, why) in [
        ("add rx test9 via 10.0.1.2", "test9"),
        ("add rx test0", "via"),
        ("add via 10.0.1.2", "rx"),
        ("add rx test0 via drop", "leads on"),
        ("add rx test0 via 10.0.1.2 via lookup in table 0", "leads on"),
        ("add rx test0 via lookup in table 9", "no IPv4 table 9"),
        ("add rx test0 via 192.0.2.1 next-hop-table 9", "no IPv4 table 9"),
        ("del rx test0", "not redirected"),
        ("del rx all", "not redirected"),
    ] {
        let said = lab.cli(&format!("ip punt redirect {words}"));
        assert!(said.contains(why), "{words}: {said}");
    }
    assert_eq!(lab.cli("show ip punt redirect").trim(), "");
    lab.close();
}

#[test]
fn redirects_go_with_their_interfaces() {
    let mut lab = router();
    lab.cli("create sub-interfaces test1 7");
    lab.ok("set interface state test1.7 up");
    lab.cli("create sub-interfaces test2 8");
    lab.ok("set interface state test2.8 up");
    lab.ok("ip punt redirect add rx all via test1.7");
    lab.ok("ip punt redirect add rx test0 via 10.0.1.2 test1.7 via 10.0.2.2 test2.8");
    lab.ok("ip punt redirect add rx test2.8 via 10.0.1.2 test1");
    lab.ok("delete sub-interface test1.7");
    let text = lab.cli("show ip punt redirect");
    assert!(!text.contains("all") && !text.contains("test1.7"), "{text}");
    assert!(text.contains(" rx test0 via:\n   10.0.2.2 test2.8\n"), "{text}");
    lab.ok("delete sub-interface test2.8");
    assert_eq!(lab.cli("show ip punt redirect").trim(), "");
    lab.receive_packet(0, 2, unheard());
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).code, 3);
    // An interface that comes later is one of all.
    lab.ok("ip punt redirect add rx all via 10.0.2.3");
    lab.cli("create sub-interfaces test1 7");
    lab.ok("set interface state test1.7 up");
    lab.ok("delete sub-interface test1.7");
    arrives(&mut lab, &unheard(), (2, 3));
    lab.close();
}

#[test]
fn redirects_change_under_load() {
    let mut lab = setup().workers(2).buffers(4096).start();
    let frame = framed(0, 2, &unheard().build());
    for n in 0..40 {
        lab.ok(&format!("ip punt redirect add rx all via 10.0.{}.2", 1 + n % 2));
        lab.deliver_to(n % 2, 0, vec![frame.clone(); 20]);
        lab.ok("ip punt redirect del rx all");
        lab.deliver_to((n + 1) % 2, 0, vec![frame.clone(); 20]);
    }
    lab.settle();
    lab.close();
}
