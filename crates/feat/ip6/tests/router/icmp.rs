//! ICMPv6 to the router, and its errors.

use crate::{link_local, router};
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip6::{at, framed, framed_to, icmp, ip, link, sound, udp};
use thalweg_wire::MacAddr;
use thalweg_wire::icmpv6::{Icmp6Repr, fill_checksum};
use thalweg_wire::ipv6::Ipv6Repr;

/// An echo request, with extension headers before it.
fn echo(src: std::net::Ipv6Addr, dst: std::net::Ipv6Addr, before: &[u8], first: u8) -> Vec<u8> {
    let mut message = [&[0; 8][..], b"some data"].concat();
    Icmp6Repr::echo_request(7, 9).emit(&src, &dst, &mut message).unwrap();
    let mut packet = vec![0; 40];
    let length = (before.len() + message.len()) as u16;
    Ipv6Repr { hop_limit: 3, ..Ipv6Repr::new(src, dst, first, length) }.emit(&mut packet).unwrap();
    [packet, before.to_vec(), message].concat()
}

#[test]
fn echo_requests_are_answered() {
    let mut lab = router();
    lab.receive(0, vec![framed(0, 2, &echo(ip(0, 2), ip(0, 1), &[], 58))]);
    let out = lab.sent_one(0);
    let (src, message) = icmp(0, 2, &out);
    assert_eq!((src, message.kind(), message.payload()), (ip(0, 1), 129, &b"some data"[..]));
    assert_eq!(message.echo().map(|e| (e.id, e.seq)), Some((7, 9)));
    // Requests go to another interface's address, and come behind a hop-by-hop header.
    let padding = [58, 0, 1, 4, 0, 0, 0, 0];
    lab.receive(0, vec![framed(0, 2, &echo(ip(0, 2), ip(2, 1), &padding, 0))]);
    let out = lab.sent_one(0);
    assert_eq!(sound(0, 2, &out).src(), ip(2, 1));
    // The reply is a packet of its own, whatever was before the message.
    let many = [&[58, 24, 1, 198][..], &[0; 196]].concat();
    let alert = [58, 0, 5, 2, 0, 0, 1, 0];
    let atomic = [58, 0, 0, 0, 0, 0, 0, 9];
    for (before, first) in [(&many[..], 60), (&alert, 0), (&atomic, 44)] {
        lab.receive(0, vec![framed(0, 2, &echo(ip(1, 2), ip(0, 1), before, first))]);
        let out = lab.sent_one(1);
        let (src, message) = icmp(1, 2, &out);
        assert_eq!((src, message.kind(), message.payload()), (ip(0, 1), 129, &b"some data"[..]));
        assert_eq!(out.len(), 14 + 40 + 8 + 9);
    }
    // A routing header is not reversed.
    let routing = [58, 0, 4, 0, 0, 0, 0, 0];
    lab.receive(0, vec![framed(0, 2, &echo(ip(0, 2), ip(0, 1), &routing, 43))]);
    assert!(lab.sent().is_empty());
    // A broken one is dropped.
    let mut bad = echo(ip(0, 2), ip(0, 1), &[], 58);
    bad[50] ^= 1;
    lab.receive(0, vec![framed(0, 2, &bad)]);
    assert_eq!(lab.count("ip6-icmp-input", "bad icmp checksum"), 1);
    lab.close();
}

#[test]
fn link_local_addresses_and_groups_are_answered() {
    let mut lab = router();
    lab.neighbor(0, link(2), host_mac(0, 2));
    let own = link_local(&lab, 0);
    lab.receive(0, vec![framed(0, 2, &echo(link(2), own, &[], 58))]);
    let out = lab.sent_one(0);
    assert_eq!(icmp(0, 2, &out).0, own);
    let all = at("ff02::1");
    let group = MacAddr::from_ipv6_multicast(all);
    for (from, source) in [(link(2), own), (ip(0, 2), ip(0, 1))] {
        lab.receive(0, vec![framed_to(group, host_mac(0, 2), &echo(from, all, &[], 58))]);
        let out = lab.sent_one(0);
        assert_eq!(icmp(0, 2, &out).0, source);
    }
    // Nobody is there to be answered, wherever the default route leads.
    lab.ok("ip route add ::/0 via 2001:db8:0:1::2 test1");
    let ask = echo(at("::"), all, &[], 58);
    lab.receive(0, vec![framed_to(group, host_mac(0, 2), &ask)]);
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip6-icmp-echo-request", "icmp echo request without source"), 1);
    lab.close();
}

#[test]
fn errors_name_what_is_wrong() {
    let mut lab = router();
    lab.ok("ip6 table unreachables 0 on");
    lab.ok("ip route add 2001:db8:a::/48 via unreachable");
    lab.ok("ip route add 2001:db8:b::/48 via prohibit");
    lab.ok("ip route add 2001:db8:c::/48 via drop");
    let to = |text: &str| udp(ip(0, 2), at(text), 9).build();
    let mut unknown = to("2001:db8::1");
    unknown[6] = 201;
    for (packet, kind, code, rest) in [
        (udp(ip(0, 2), ip(1, 2), 9).ttl(1).build(), 3, 0, 0),
        (udp(ip(0, 2), ip(1, 2), 9).ttl(0).build(), 3, 0, 0),
        (to("2001:db8:a::1"), 1, 0, 0),
        (to("2001:db8:b::1"), 1, 1, 0),
        (to("2001:dead::1"), 1, 0, 0),
        (to("2001:db8::1"), 1, 4, 0),
        (unknown, 4, 1, 6),
    ] {
        lab.receive(0, vec![framed(0, 2, &packet)]);
        let out = lab.sent_one(0);
        let (src, message) = icmp(0, 2, &out);
        assert_eq!((message.kind(), message.code(), message.rest()), (kind, code, rest));
        assert_eq!((src, message.payload()), (ip(0, 1), &packet[..]));
    }
    lab.receive(0, vec![framed(0, 2, &to("2001:db8:c::1"))]);
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip6-lookup", "drop route"), 1);
    lab.close();
}

#[test]
fn extension_headers_are_as_they_must_be() {
    let mut lab = router();
    let option = |kind| [58, 0, 0, kind, 3, 1, 2, 3];
    let route = [58, 0, 0, 1, 0, 0, 0, 0];
    for (before, first, code, pointer) in
        [(option(0x80), 60, 2, 43), (option(0xc2), 0, 2, 43), (route, 43, 0, 42)]
    {
        let packet = echo(ip(0, 2), ip(0, 1), &before, first);
        lab.receive(0, vec![framed(0, 2, &packet)]);
        let out = lab.sent_one(0);
        let (_, message) = icmp(0, 2, &out);
        assert_eq!((message.kind(), message.code(), message.rest()), (4, code, pointer));
        assert_eq!(message.payload(), packet);
    }
    // One that may be skipped; one that is dropped without an error.
    lab.receive(0, vec![framed(0, 2, &echo(ip(0, 2), ip(0, 1), &option(0x1e), 60))]);
    let out = lab.sent_one(0);
    let reply = sound(0, 2, &out);
    assert_eq!((reply.next_header(), reply.payload()[0]), (58, 129));
    lab.receive(0, vec![framed(0, 2, &echo(ip(0, 2), ip(0, 1), &option(0x40), 60))]);
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip6-local", "ip6 extension headers cannot be read"), 4);
    // Others' packets are forwarded, whatever they carry.
    lab.neighbor(1, ip(1, 2), host_mac(1, 2));
    lab.receive(0, vec![framed(0, 2, &echo(ip(0, 2), ip(1, 2), &option(0x80), 60))]);
    lab.sent_one(1);
    lab.close();
}

#[test]
fn errors_are_limited_and_never_answer_errors() {
    let mut lab = router();
    let expired = framed(0, 2, &udp(ip(0, 2), ip(1, 2), 9).ttl(1).build());
    lab.receive(0, vec![expired; 250]);
    assert!(lab.count("ip6-icmp-error", "icmp errors not sent: rate limit") > 0);
    assert!(lab.sent().len() < 250);
    let mut error = [0; 48];
    Ipv6Repr { hop_limit: 1, ..Ipv6Repr::new(ip(0, 2), ip(1, 2), 58, 8) }.emit(&mut error).unwrap();
    error[40] = 1;
    fill_checksum(&ip(0, 2), &ip(1, 2), &mut error[40..]).unwrap();
    lab.receive(0, vec![framed(0, 2, &error)]);
    assert!(lab.sent().is_empty());
    let text = "icmp errors not sent: not allowed for this packet";
    assert_eq!(lab.count("ip6-icmp-error", text), 1);
    lab.close();
}

/// Hosts at other interfaces get their answers during a flood.
#[test]
fn a_flood_at_one_interface_leaves_errors_for_others() {
    let mut lab = router();
    let expired = |n: u8| framed(n, 2, &udp(ip(n, 2), ip(1 - n, 2), 9).ttl(1).build());
    lab.neighbor(1, ip(1, 2), host_mac(1, 2));
    lab.sent();
    let frames = (0..256).map(|i| if i < 240 { 0 } else { 1 }).map(|n| (n, expired(n))).collect();
    lab.deliver_mixed(0, frames);
    lab.settle();
    let (sent, other) = (lab.sent(), lab.sw_if(1));
    assert_eq!(sent.iter().filter(|(sw_if, _)| *sw_if == other).count(), 16);
    assert!(sent.len() < 256);
    lab.close();
}

#[test]
fn datagrams_to_us_need_a_checksum() {
    let mut lab = router();
    let mut packet = udp(ip(0, 2), ip(0, 1), 9).build();
    packet[46..48].fill(0);
    lab.receive(0, vec![framed(0, 2, &packet)]);
    assert!(lab.sent().is_empty());
    let text = "ip6 udp checksum is wrong or missing";
    assert_eq!(lab.count("ip6-local", text), 1);
    lab.close();
}

/// An interface that does not speak IPv6 hears nothing, whoever it is for.
#[test]
fn groups_are_not_heard_where_ipv6_is_off() {
    let mut lab = crate::bare().start();
    lab.ok("enable ip6 interface test1");
    let all = at("ff02::1");
    let group = MacAddr::from_ipv6_multicast(all);
    for n in [0, 1] {
        let frame = framed_to(group, host_mac(n, 2), &echo(link(2), all, &[], 58));
        lab.receive(n, vec![frame]);
        lab.turn();
    }
    assert_eq!(lab.count("ip6-not-enabled", "ip6 is not enabled on the interface"), 1);
    assert!(lab.sent().iter().all(|(sw_if, _)| *sw_if == lab.sw_if(1)));
    lab.close();
}
