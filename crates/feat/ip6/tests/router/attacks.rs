//! Tests while packets, asked for or not, keep coming.

use crate::{router, setup};
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};
use thalweg_device::testing::ip6::{at, framed, framed_to, ip, link, sound, udp};
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_feat_neighbor as neighbor;
use thalweg_wire::MacAddr;
use thalweg_wire::icmpv6::fill_checksum;
use thalweg_wire::ip::protocol::ICMPV6;
use thalweg_wire::ipv6::Ipv6Repr;
use thalweg_wire::nd::solicited_node;

/// Routes, tables, addresses, proxies and neighbours change while two workers forward.
#[test]
fn all_of_it_changes_under_load_of_two_workers() {
    let mut lab = setup().workers(2).start();
    lab.ok("ip6 table add 10\nip route add 2001:db8:a::/48 table 10 via 2001:db8:0:1::2 test1");
    let to = |dst: Ipv6Addr| framed(0, 2, &udp(ip(0, 2), dst, 60).build());
    let targets = ["2001:db8:a::1", "2001:db8:b::1", "2001:db8:c::1", "2001:db8:0:1::2", "fd00::1"];
    for round in 0..60u32 {
        for worker in 0..2 {
            for target in targets {
                lab.deliver_to(worker, 0, vec![to(at(target)); 32]);
            }
            let mixed = (0..64usize).map(|i| to(at(targets[i % targets.len()])));
            lab.deliver_to(worker, 0, mixed.collect());
        }
        let n = 1 + round % 2;
        lab.ok(&format!(
            "ip route replace 2001:db8:a::/48 via 2001:db8:0:{n}::2 test{n}\n\
             ip route replace 2001:db8:b::/48 via 2001:db8:a::{round:x}"
        ));
        match round % 6 {
            0 => lab.ok("ip route add 2001:db8:c::/48 via ip6-lookup-in-table 10"),
            1 => lab.ok("set ip6 nd proxy test2 2001:db8:c::1"),
            2 => lab.ok("set interface ip address test2 fd00::1/64"),
            3 => lab.ok("ip route del 2001:db8:c::/48\nip6 table del 10\nip6 table add 10\n\
                         ip route add 2001:db8:a::/48 table 10 via 2001:db8:0:1::3 test1"),
            4 => lab.ok("set interface ip address del test2 fd00::1/64\n\
                         set interface state test2 down\nset interface state test2 up"),
            _ => lab.ok("set ip6 nd proxy test2 del 2001:db8:c::1\n\
                         ip route del 2001:db8:b::/48"),
        }
        lab.c.run_once(Some(Duration::ZERO));
    }
    lab.settle();
    for (_, frame) in lab.sent() {
        assert_eq!((frame[12..14].to_vec(), frame[14] >> 4), (vec![0x86, 0xdd], 6));
    }
    lab.ok("ip route replace 2001:db8:a::/48 via 2001:db8:0:1::2 test1");
    lab.receive(0, vec![to(at("2001:db8:a::1"))]);
    sound(1, 2, &lab.sent_one(1));
    lab.close();
}

/// A solicitation from a host, or an advertisement of it.
fn message(kind: u8, src: Ipv6Addr, target: Ipv6Addr, mac: MacAddr) -> Vec<u8> {
    let (dst, option) = if kind == 135 { (solicited_node(target), 1) } else { (ip(0, 1), 2) };
    let mut message = vec![kind, 0, 0, 0, 0x40 * u8::from(kind == 136), 0, 0, 0];
    message.extend(target.octets());
    message.extend([option, 1]);
    message.extend(mac.0);
    fill_checksum(&src, &dst, &mut message).expect("a message");
    let mut packet = vec![0; 40];
    let header = Ipv6Repr::new(src, dst, ICMPV6, message.len() as u16);
    Ipv6Repr { hop_limit: 255, ..header }.emit(&mut packet).expect("a header");
    let to = if kind == 135 { MacAddr::from_ipv6_multicast(dst) } else { our_mac(0) };
    framed_to(to, mac, &[packet, message].concat())
}

/// An ICMPv6 message from a neighbour to the router.
fn to_us(src: Ipv6Addr, dst: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    fill_checksum(&src, &dst, &mut message).expect("a message");
    let mut packet = vec![0; 40];
    let header = Ipv6Repr::new(src, dst, ICMPV6, message.len() as u16);
    Ipv6Repr { hop_limit: 255, ..header }.emit(&mut packet).expect("a header");
    framed(0, 2, &[packet, message].concat())
}

/// A packet has been sent to the second host of `testN`, whatever else was.
fn arrives(lab: &mut Lab, n: u8) {
    let sent = lab.sent().into_iter().map(|(_, frame)| frame);
    let there: Vec<_> = sent.filter(|frame| frame[..6] == host_mac(n, 2).0).collect();
    assert_eq!(there.len(), 1);
    sound(n, 2, &there[0]);
}

/// Questions and answers of hosts that do not exist take no room without end, nor the place of
/// those that exist.
#[test]
fn floods_of_neighbours_are_bounded() {
    let mut lab = router();
    lab.ok("ip route add 2001:db8:a::/48 via 2001:db8:0:1::2 test1");
    let host = |n: u32| Ipv6Addr::from_bits(ip(0, 0).to_bits() | u128::from(n) << 16 | 9);
    let mac = |n: u32| MacAddr([2, 9, (n >> 16) as u8, (n >> 8) as u8, n as u8, 9]);
    let sw_if = lab.sw_if(0);
    let known = |lab: &Lab| {
        let all = lab.c.state::<neighbor::Neighbors>();
        let all = all.borrow();
        let (first, last) = (Ipv6Addr::UNSPECIFIED, Ipv6Addr::from_bits(u128::MAX));
        all.between(sw_if, first.into(), last.into()).count()
    };
    let (before, began) = (known(&lab), Instant::now());
    for (kind, from) in [(135, 0u32), (136, 10_000), (135, 20_000)] {
        for some in 0..20 {
            let one = |i: u32| {
                let n = from + some * 200 + i;
                // Some are for targets that are not ours, or come from link-local sources.
                let src = if i.is_multiple_of(3) { link(9) } else { host(n) };
                let target = match (kind, i % 2) {
                    (136, _) => src,
                    (_, 0) => ip(0, 1),
                    _ => host(n + 1),
                };
                message(kind, src, target, mac(n))
            };
            lab.deliver(0, (0..200).map(one).collect());
            lab.settle();
            lab.c.run_once(Some(Duration::ZERO));
            // Other packets pass.
            lab.sent();
            lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), at("2001:db8:a::1"), 20).build())]);
            arrives(&mut lab, 1);
        }
    }
    // Each kind may have 512 at once and 5000 in a second.
    let allowed = 2.0 * (512.0 + 5000.0 * began.elapsed().as_secs_f64());
    let grown = known(&lab) - before;
    assert!((grown as f64) < allowed, "{grown}");
    let limited = "neighbor solicitation senders not learned: rate limit";
    // A third of the solicitations are for us, from others. A slow machine can hear all of them.
    let slower = allowed >= 2.0 * (66 * 20 * 2) as f64;
    assert!(slower || lab.count("icmp6-neighbor-solicitation", limited) > 0);
    // The static ones are where they were.
    lab.receive(1, vec![framed(1, 2, &udp(ip(1, 2), ip(0, 2), 20).build())]);
    arrives(&mut lab, 0);
    lab.close();
}

/// Replies to echo requests that nobody has sent leave room for the reports of other hosts.
#[test]
fn floods_of_echo_replies_leave_room_for_others() {
    let mut lab = router();
    let reply = to_us(ip(0, 2), ip(0, 1), &[129, 0, 0, 0, 0, 1, 0, 1]);
    // More than the main thread is asked to take, which does nothing meanwhile.
    for _ in 0..40 {
        lab.deliver(0, vec![reply.clone(); 250]);
        lab.seen();
    }
    lab.deliver(0, vec![message(135, ip(0, 77), ip(0, 1), host_mac(0, 77))]);
    lab.settle();
    let busy = "neighbor solicitation senders not learned: main thread busy";
    assert_eq!(lab.count("icmp6-neighbor-solicitation", busy), 0);
    assert_eq!(lab.count("ip6-icmp-input", "icmp echo replies received"), 10_000);
    lab.close();
}

/// A router is nobody's host: redirects (RFC 4861 section 8.1) change nothing.
#[test]
fn redirects_change_nothing() {
    let mut lab = router();
    lab.ok("ip route add 2001:db8:a::/48 via 2001:db8:0:1::2 test1");
    let elsewhere = at("2001:db8:a::1");
    let mut redirect = vec![137, 0, 0, 0, 0, 0, 0, 0];
    redirect.extend(link(9).octets());
    redirect.extend(elsewhere.octets());
    redirect.extend([2, 1]);
    redirect.extend(host_mac(0, 9).0);
    for src in [link(2), ip(0, 2)] {
        lab.deliver(0, vec![to_us(src, ip(0, 1), &redirect); 200]);
        lab.settle();
    }
    // Cut anywhere, it is as little.
    for end in 8..redirect.len() {
        lab.deliver(0, vec![to_us(link(2), ip(0, 1), &redirect[..end])]);
    }
    lab.settle();
    assert!(lab.sent().is_empty());
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), elsewhere, 20).build())]);
    arrives(&mut lab, 1);
    assert!(!lab.cli("show ip6 neighbors").contains("fe80::99:9"));
    lab.close();
}

/// Packets that ask routers to look at them (RFC 2711) are forwarded like others, and cost the main
/// thread nothing; those that it must not forward stay on their link.
#[test]
fn router_alerts_are_packets_like_others() {
    let mut lab = router();
    lab.ok("ip route add 2001:db8:a::/48 via 2001:db8:0:1::2 test1\nip6 table unreachables 0 on");
    let alert = [17, 0, 5, 2, 0, 0, 1, 0];
    let packet = |dst: Ipv6Addr, options: &[u8]| {
        let mut packet = udp(ip(0, 2), dst, 20).build();
        let length = u16::from_be_bytes([packet[4], packet[5]]) + options.len() as u16;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        packet[6] = 0;
        packet.splice(40..40, options.iter().copied());
        framed(0, 2, &packet)
    };
    let transit = packet(at("2001:db8:a::1"), &alert);
    for _ in 0..20 {
        lab.deliver(0, vec![transit.clone(); 200]);
        lab.seen();
    }
    lab.settle();
    let sent = lab.sent();
    assert_eq!(sent.len(), 4000);
    let sw_if = lab.sw_if(1);
    assert!(sent.iter().all(|(i, f)| *i == sw_if && f[..6] == host_mac(1, 2).0 && f[21] == 63));
    // Nobody is there for packets to ourselves; nobody listens to those to groups. Errors are
    // limited.
    for dst in [ip(0, 1), at("ff02::1"), at("ff02::16"), at("ff0e::7")] {
        lab.deliver(0, vec![packet(dst, &alert); 250]);
        lab.settle();
        assert!(lab.sent().len() <= 210, "{dst}");
    }
    // Options that run over the header's end, or lie about their length.
    for bad in [
        [17, 0, 5, 200, 0, 0, 1, 0],
        [17, 255, 5, 2, 0, 0, 1, 0],
        [17, 9, 5, 2, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
    ] {
        for dst in [ip(0, 1), at("2001:db8:a::1"), at("ff02::1")] {
            lab.deliver(0, vec![packet(dst, &bad); 50]);
            lab.settle();
        }
    }
    lab.sent();
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), at("2001:db8:a::1"), 20).build())]);
    arrives(&mut lab, 1);
    lab.close();
}
