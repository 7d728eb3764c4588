//! ICMP messages sent by the router.

use crate::router;
use std::net::Ipv4Addr;
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip4::{framed, icmp_error, ip, sound, udp};
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv4::{IcmpRepr, IcmpView};

#[test]
fn a_packet_out_of_hops_is_answered_with_its_beginning() {
    let mut lab = router();
    for ttl in [0, 1] {
        let packet = udp(ip(0, 2), ip(1, 2), 64).ttl(ttl).build();
        lab.receive(0, vec![framed(0, 2, &packet)]);
        let e = icmp_error(0, 2, &lab.sent_one(0));
        assert_eq!((e.kind, e.code, e.src, e.dst), (11, 0, ip(0, 1), ip(0, 2)));
        assert_eq!(e.quoted, packet);
    }
    // A long packet is quoted up to 576 bytes.
    let packet = udp(ip(0, 2), ip(1, 2), 5000).ttl(1).build();
    lab.receive(0, vec![framed(0, 2, &packet)]);
    let e = icmp_error(0, 2, &lab.sent_one(0));
    assert_eq!(e.quoted, packet[..576 - 28]);
    assert_eq!(lab.count("ip4-rewrite", "ip4 ttl <= 1"), 3);
    assert_eq!(lab.count("ip4-icmp-error", "icmp errors sent"), 3);
    // Without an identification of their own, they must not be fragmented (RFC 6864).
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(1, 2), 64).ttl(1));
    let out = lab.sent_one(0);
    let v = sound(0, 2, &out);
    assert!(v.dont_fragment());
    assert_eq!((v.tos(), v.ttl()), (0, 255));
    lab.close();
}

#[test]
fn routes_that_end_here_say_so() {
    let mut lab = router();
    lab.ok("ip route add 192.0.2.0/26 drop\n\
         ip route add 192.0.2.64/26 via unreachable\n\
         ip route add 192.0.2.128/26 prohibit");
    let dst = |n: u8| udp(ip(0, 2), [192, 0, 2, n].into(), 8);
    lab.receive_packet(0, 2, dst(1));
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip4-lookup", "drop route"), 1);
    // Senders are notified of a missing route only if the table says so (RFC 1812 section 5.2.7.1).
    lab.receive_packet(0, 2, dst(200));
    assert_eq!((lab.sent().len(), lab.count("ip4-lookup", "no route")), (0, 1));
    lab.ok("ip route add 192.0.2.208/28 via 172.16.0.1");
    let nowhere = "next hop of the route leads nowhere";
    lab.receive_packet(0, 2, dst(210));
    assert_eq!((lab.sent().len(), lab.count("ip4-lookup", nowhere)), (0, 1));
    for (n, want, text, times) in [
        (65, (3, 1), "unreachable route", 1),
        (129, (3, 10), "prohibited route", 1),
        (200, (3, 0), "no route", 2),
        (210, (3, 1), nowhere, 2),
    ] {
        if n == 200 {
            lab.ok("ip table unreachables 0 on");
        }
        lab.receive_packet(0, 2, dst(n));
        let e = icmp_error(0, 2, &lab.sent_one(0));
        assert_eq!((e.kind, e.code), want, "{text}");
        assert_eq!(e.src, ip(0, 1));
        assert_eq!(lab.count("ip4-lookup", text), times, "{text}");
    }
    lab.ok("ip table unreachables 0 off");
    lab.receive_packet(0, 2, dst(200));
    assert!(lab.sent().is_empty());
    assert_eq!(lab.dropped(), 8);
    lab.close();
}

#[test]
fn an_interface_that_is_down_makes_its_hosts_unreachable() {
    let mut lab = router();
    lab.up(1, false);
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(1, 2), 8));
    assert!(lab.sent().is_empty());
    lab.ok("ip table unreachables 0 on");
    // The subnet has no route while its interface is down, a configured neighbour has.
    for (host, code) in [(2, 1), (99, 0)] {
        lab.receive_packet(0, 2, udp(ip(0, 2), ip(1, host), 8));
        let e = icmp_error(0, 2, &lab.sent_one(0));
        assert_eq!((e.kind, e.code, e.src), (3, code, ip(0, 1)), "host {host}");
    }
    assert_eq!(lab.count("ip4-lookup", "next-hop interface is down"), 2);
    lab.up(1, true);
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(1, 2), 8));
    sound(1, 2, &lab.sent_one(1));
    // Packets received on an interface that is down are dropped without an answer.
    lab.up(0, false);
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(1, 2), 8));
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ethernet-input", "interface is down"), 1);
    lab.close();
}

#[test]
fn pings_to_every_own_address_are_answered() {
    let mut lab = router();
    for own in [ip(0, 1), ip(1, 1), ip(2, 1)] {
        for len in [0, 1, 56, 4000] {
            let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let ask = Packet::new().ipv4(ip(0, 2), own).ttl(1).icmp_echo_request(7, 9);
            lab.receive_packet(0, 2, ask.payload(&data));
            let out = lab.sent_one(0);
            let v = sound(0, 2, &out);
            assert_eq!((v.src(), v.dst(), v.ttl()), (own, ip(0, 2), 64));
            let icmp = IcmpView::parse(v.payload()).expect("icmp");
            assert!(icmp.checksum_ok(), "{len} bytes");
            assert_eq!((icmp.kind(), icmp.payload()), (0, &data[..]));
            assert_eq!(icmp.echo().map(|e| (e.id, e.seq)), Some((7, 9)));
        }
    }
    assert_eq!(lab.count("ip4-icmp-echo-request", "icmp echo replies sent"), 12);
    // The request has options, and comes through another interface.
    let ask = Packet::new().ipv4(ip(2, 3), ip(0, 1)).ip_options(&[1, 1, 1, 0]);
    lab.receive_packet(2, 3, ask.icmp_echo_request(1, 1).payload(b"hello"));
    assert_eq!(sound(2, 3, &lab.sent_one(2)).src(), ip(0, 1));
    lab.close();
}

/// A reply is a packet of its own: options of a request for routers on the way do not reach the
/// routers on the way back to its claimed source.
#[test]
fn replies_carry_no_options() {
    let mut lab = router();
    let record = [&[7, 39, 4][..], &[0; 37]].concat();
    for options in [&[148, 4, 0, 0][..], &[1; 40], &record] {
        let ask = Packet::new().ipv4(ip(1, 2), ip(0, 1)).ip_options(options);
        lab.receive_packet(0, 2, ask.icmp_echo_request(7, 9).payload(b"hello"));
        let out = lab.sent_one(1);
        let v = sound(1, 2, &out);
        assert_eq!((v.src(), v.dst(), v.header_len()), (ip(0, 1), ip(1, 2), 20));
        assert_eq!(out.len(), 14 + 20 + 8 + 5);
        let icmp = IcmpView::parse(v.payload()).expect("icmp");
        assert!(icmp.checksum_ok());
        assert_eq!((icmp.kind(), icmp.payload()), (0, &b"hello"[..]));
    }
    // The source route is the only one that is left.
    let options = [&[148, 4, 0, 0, 131, 7, 8, 10, 0, 0, 3, 1][..], &record[..12]].concat();
    let ask = Packet::new().ipv4(ip(0, 2), ip(0, 1)).ip_options(&options);
    lab.receive_packet(0, 3, ask.icmp_echo_request(7, 9));
    let out = lab.sent_one(0);
    let v = sound(0, 3, &out);
    assert_eq!(v.options_bytes(), [131, 7, 4, 10, 0, 0, 2, 0]);
    assert!(IcmpView::parse(v.payload()).expect("icmp").checksum_ok());
    lab.close();
}

/// RFC 1122 section 3.2.1.3, RFC 1812 section 5.3.4: whatever would be answered to all hosts of a
/// link is not answered.
#[test]
fn nothing_is_answered_to_a_broadcast_address() {
    let mut lab = router();
    lab.ok("set interface ip directed-broadcast test1 enable");
    let all = Ipv4Addr::new(10, 0, 1, 255);
    let packets = |src| {
        [
            Packet::new().ipv4(src, ip(0, 1)).icmp_echo_request(7, 9),
            udp(src, ip(0, 1), 8),
            udp(src, ip(1, 2), 8).ttl(1),
            udp(src, [203, 0, 113, 1].into(), 8),
        ]
    };
    for packet in packets(all) {
        lab.receive_packet(0, 2, packet);
        assert_eq!(lab.sent(), []);
    }
    let reason = "icmp echo request from an address that no host has";
    assert_eq!(lab.count("ip4-icmp-echo-request", reason), 1);
    // An error about a packet to such an address is not sent either.
    lab.receive_packet(0, 2, udp(ip(0, 2), all, 8).ttl(1));
    assert_eq!(lab.sent(), []);
    // A host of the link is.
    lab.receive_packet(0, 2, packets(ip(1, 3)).into_iter().next().expect("a ping"));
    assert_eq!(lab.sent_one(1)[..6], host_mac(1, 3).0);
    lab.close();
}

/// RFC 1122 section 3.2.1.3: a group is never a source.
#[test]
fn pings_to_a_group_are_answered_from_the_interface() {
    let mut lab = router();
    lab.ok("ip route add 239.3.0.1/32 via local");
    let ask = Packet::new().ipv4(ip(0, 2), [239, 3, 0, 1].into()).icmp_echo_request(7, 9);
    let mut frame = framed(0, 2, &ask.build());
    frame[..6].copy_from_slice(&[1, 0, 0x5e, 3, 0, 1]);
    lab.receive(0, vec![frame]);
    let out = lab.sent_one(0);
    let v = sound(0, 2, &out);
    assert_eq!((v.src(), v.dst()), (ip(0, 1), ip(0, 2)));
    assert!(IcmpView::parse(v.payload()).expect("icmp").checksum_ok());
    lab.close();
}

#[test]
fn a_ping_by_a_source_route_is_answered_the_way_it_came() {
    let mut lab = router();
    let ask = |options: &[u8]| {
        let ask = Packet::new().ipv4(ip(0, 2), ip(0, 1)).ip_options(options);
        ask.icmp_echo_request(7, 9).payload(b"hello")
    };
    // The packet came by way of 10.0.0.3, which has put its address there.
    lab.receive_packet(0, 3, ask(&[1, 131, 7, 8, 10, 0, 0, 3]));
    let out = lab.sent_one(0);
    let v = sound(0, 3, &out);
    assert_eq!((v.src(), v.dst()), (ip(0, 1), ip(0, 3)));
    assert_eq!(v.options_bytes(), [131, 7, 4, 10, 0, 0, 2, 0]);
    assert!(IcmpView::parse(v.payload()).expect("icmp").checksum_ok());
    // One that goes on from here is not answered.
    lab.receive_packet(0, 3, ask(&[1, 131, 7, 4, 10, 0, 0, 4]));
    assert!(lab.sent().is_empty());
    let reason = "icmp echo request with a source route that does not end here";
    assert_eq!(lab.count("ip4-icmp-echo-request", reason), 1);
    lab.close();
}

#[test]
fn packets_without_a_listener_are_refused() {
    let mut lab = router();
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(0, 1), 32));
    let e = icmp_error(0, 2, &lab.sent_one(0));
    assert_eq!((e.kind, e.code, e.src), (3, 3, ip(0, 1)));
    assert_eq!(lab.count("ip4-local", "no listener for dst port"), 1);

    lab.receive_packet(0, 2, Packet::new().ipv4(ip(0, 2), ip(1, 1)).protocol(99).payload(&[0; 30]));
    let e = icmp_error(0, 2, &lab.sent_one(0));
    assert_eq!((e.kind, e.code), (3, 2));
    assert_eq!(lab.count("ip4-local", "unknown ip protocol"), 1);

    lab.receive_packet(0, 2, Packet::new().ipv4(ip(0, 2), ip(0, 1)).tcp(1, 2));
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip4-local", "no listener for dst port"), 2);

    lab.receive_packet(0, 2, udp(ip(0, 2), ip(0, 1), 32).fragment(0, true));
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip4-local", "ip4 fragments to local address not reassembled"), 1);
    lab.close();
}

#[test]
fn errors_are_not_answered_with_errors() {
    let mut lab = router();
    lab.ok("ip table unreachables 0 on");
    let nowhere = Ipv4Addr::new(192, 0, 2, 1);
    let about = udp(nowhere, ip(0, 2), 8).build();
    let error =
        Packet::new().ipv4(ip(0, 2), nowhere).icmp(IcmpRepr::unreachable(3)).payload(&about);
    lab.receive_packet(0, 2, error);
    lab.receive_packet(0, 2, udp(ip(0, 2), nowhere, 64).fragment(64, false));
    assert!(lab.sent().is_empty());
    let text = "icmp errors not sent: not allowed for this packet";
    assert_eq!(lab.count("ip4-icmp-error", text), 2);
    assert_eq!(lab.count("ip4-lookup", "no route"), 2);
    // Pings to such a destination are answered.
    let ping = Packet::new().ipv4(ip(0, 2), nowhere).icmp_echo_request(1, 1);
    lab.receive_packet(0, 2, ping);
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).kind, 3);
    lab.close();
}

#[test]
fn errors_have_a_limit() {
    let mut lab = router();
    lab.ok("ip table unreachables 0 on");
    let frame = framed(0, 2, &udp(ip(0, 2), [192, 0, 2, 1].into(), 8).build());
    lab.receive(0, vec![frame; 1000]);
    let sent = lab.sent().len() as u64;
    assert!((90..600).contains(&sent), "{sent}");
    assert_eq!(lab.count("ip4-icmp-error", "icmp errors not sent: rate limit"), 1000 - sent);
    assert_eq!(lab.dropped(), 1000);
    lab.close();
}

/// Hosts at other interfaces get their answers during a flood.
#[test]
fn a_flood_at_one_interface_leaves_errors_for_others() {
    let mut lab = router();
    let expired = |n: u8| framed(n, 2, &udp(ip(n, 2), ip(1 - n, 2), 8).ttl(1).build());
    let frames = (0..256).map(|i| if i < 240 { 0 } else { 1 }).map(|n| (n, expired(n))).collect();
    lab.deliver_mixed(0, frames);
    lab.settle();
    let (sent, other) = (lab.sent(), lab.sw_if(1));
    assert_eq!(sent.iter().filter(|(sw_if, _)| *sw_if == other).count(), 16);
    assert!(sent.len() < 256);
    lab.close();
}

#[test]
fn icmp_to_the_router_is_checked() {
    let mut lab = router();
    let mut bad = Packet::new().ipv4(ip(0, 2), ip(0, 1)).icmp_echo_request(1, 2).build();
    bad[22] ^= 1;
    let short = Packet::new().ipv4(ip(0, 2), ip(0, 1)).protocol(1).payload(&[8, 0, 0]).build();
    let reply = Packet::new().ipv4(ip(0, 2), ip(0, 1)).icmp_echo_reply(0xffff, 1).build();
    let other = Packet::new().ipv4(ip(0, 2), ip(0, 1)).icmp(IcmpRepr::unreachable(1)).build();
    lab.receive(0, [bad, short, reply, other].map(|p| framed(0, 2, &p)).to_vec());
    assert!(lab.sent().is_empty());
    for text in [
        "bad icmp checksum",
        "icmp message too short",
        "icmp echo replies received",
        "icmp messages received",
    ] {
        assert_eq!(lab.count("ip4-icmp-input", text), 1, "{text}");
    }
    lab.close();
}

/// Replies to echo requests that nobody has sent leave room for the reports of other hosts.
#[test]
fn floods_of_echo_replies_leave_room_for_others() {
    let mut lab = router();
    let reply = Packet::new().ipv4(ip(0, 2), ip(0, 1)).icmp_echo_reply(1, 1);
    let reply = framed(0, 2, &reply.build());
    // More than the main thread is asked to take, which does nothing meanwhile.
    for _ in 0..40 {
        lab.deliver(0, vec![reply.clone(); 250]);
        lab.seen();
    }
    assert_eq!(lab.count("ip4-icmp-input", "icmp echo replies received"), 10_000);
    let ask = Packet::arp_request(host_mac(0, 77), ip(0, 77), ip(0, 1)).padded().build();
    lab.deliver(0, vec![ask]);
    lab.settle();
    assert_eq!(lab.count("arp-input", "ARP senders not learned: main thread busy"), 0);
    lab.close();
}
