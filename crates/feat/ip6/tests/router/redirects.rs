//! Punted packets that leave by a redirect.

use crate::router;
use thalweg_device::testing::ip6::{framed, ip};
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv6::Ipv6View;

/// Receives a packet by `test0` and expects it at a host behind another interface, one hop on.
fn arrives(lab: &mut Lab, packet: &Packet, (n, host): (u8, u8)) {
    let was = packet.build();
    lab.receive(0, vec![framed(0, 2, &was)]);
    let sent = lab.sent_one(n);
    assert_eq!(sent[..12], [host_mac(n, host).0, our_mac(n).0].concat());
    assert_eq!(sent[21], was[7].max(2) - 1);
    assert_eq!(sent[22..], was[8..], "nothing but the hop limit changes");
}

#[test]
fn what_nothing_takes_leaves_by_the_paths_of_its_interface() {
    let mut lab = router();
    let own = || Packet::new().ipv6(ip(0, 2), ip(0, 1));
    let unheard = own().udp(9, 3784).payload(&[0; 30]);
    let packets = [
        unheard.clone(),
        unheard.clone().ttl(1),
        own().tcp(9, 179),
        own().protocol(89).payload(&[7; 30]),
    ];
    lab.ok("ip6 punt redirect add rx test0 via 2001:db8:0:1::2 test1");
    for packet in &packets {
        arrives(&mut lab, packet, (1, 2));
    }
    lab.receive(0, vec![framed(0, 2, &own().icmp6_echo_request(1, 2).build())]);
    lab.sent_one(0);
    lab.ok("ip6 punt redirect add rx all via 2001:db8:0:2::3\nip6 punt redirect del rx test0");
    arrives(&mut lab, &unheard, (2, 3));
    let text = lab.cli("show ip6 punt redirect");
    assert!(text.contains(" rx all via:\n   2001:db8:0:2::3\n"), "{text}");
    // The packet must not come back.
    lab.ok("ip6 punt redirect add rx all via lookup in table 0");
    lab.receive(0, vec![framed(0, 2, &unheard.build())]);
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip6-punt-redirect", "punt redirect leads to the router itself"), 1);
    lab.ok("ip6 punt redirect del rx all");
    lab.receive(0, vec![framed(0, 2, &unheard.build())]);
    let sent = lab.sent_one(0);
    let error = Ipv6View::parse(&sent[14..]).expect("an IPv6 packet");
    let error = Icmp6View::parse(error.payload()).expect("an ICMPv6 message");
    assert_eq!((error.kind(), error.code()), (1, 4), "port unreachable");
    lab.close();
}
