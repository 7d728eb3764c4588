//! Routes on the main thread, compared with plain models.

use crate::{bare, router};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use thalweg_device::testing::ip4::{framed, icmp_error, ip, prefix, sound, udp};
use thalweg_device::testing::{Lab, host_mac};
use thalweg_device::{SwIfIndex, TagMatch, VlanTag, interface};
use thalweg_feat_ip::{
    Ip4, Path, PathKind, RibError, RouteError, Source, add_route, address, del_route,
};
use thalweg_fib::forwarding::{DROP, LOCAL, PROHIBIT, UNREACHABLE, UNRESOLVED};
use thalweg_fib::{Dpo, Forwarding, TableId};
use thalweg_tables::Ipv4Prefix;
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;

#[test]
fn routes_follow_their_next_hop() {
    let mut lab = router();
    lab.ok("ip table unreachables 0 on\nip route add 192.0.2.0/24 via 10.0.1.2");
    let packet = vec![framed(0, 2, &udp(ip(0, 2), [192, 0, 2, 1].into(), 8).build())];
    for _ in 0..2 {
        lab.receive(0, packet.clone());
        sound(1, 2, &lab.sent_one(1));
        lab.ok("set interface ip address del test1 10.0.1.1/24");
        lab.receive(0, packet.clone());
        assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).kind, 3);
        assert!(lab.cli("show ip fib 192.0.2.0/24").contains("recursive: oper-flags:drop,"));
        // A temporary alternative.
        lab.ok("ip route add 10.0.1.0/25 via 10.0.2.3");
        lab.receive(0, packet.clone());
        sound(2, 3, &lab.sent_one(2));
        lab.ok("ip route del 10.0.1.0/25\nset interface ip address test1 10.0.1.1/24");
    }
    lab.receive(0, packet);
    sound(1, 2, &lab.sent_one(1));
    lab.close();
}

#[test]
fn many_routes_follow_their_next_hop_at_once() {
    const ROUTES: u32 = 20_000;
    let mut lab = router();
    let path = Path::via(Ipv4Addr::new(192, 0, 2, 1), None);
    lab.ok("ip route add 192.0.2.0/24 via 10.0.1.2 test1");
    for n in 0..ROUTES {
        let prefix = Ipv4Prefix::host(0x6400_0000 + n);
        add_route(&mut lab.c, TableId(0), prefix, vec![path], false).expect("a route");
    }
    let ends = |lab: &mut Lab| {
        // Number of some destinations per egress interface.
        let all = (0..ROUTES).step_by(100).map(|n| Ipv4Addr::from_bits(0x6400_0000 + n));
        let frames = all.map(|dst| framed(0, 2, &udp(ip(0, 2), dst, 8).build())).collect();
        lab.receive(0, frames);
        let (one, two) = (lab.sw_if(1), lab.sw_if(2));
        let sent = lab.sent();
        [one, two].map(|sw_if| sent.iter().filter(|(by, _)| *by == sw_if).count())
    };
    assert_eq!(ends(&mut lab), [200, 0]);
    let nearer = [Path::via(Ipv4Addr::new(10, 0, 2, 2), Some(lab.sw_if(2)))];
    add_route(&mut lab.c, TableId(0), prefix("192.0.2.0/25"), nearer.to_vec(), false)
        .expect("a route");
    assert_eq!(ends(&mut lab), [0, 200]);
    lab.ok("ip route del 192.0.2.0/25");
    assert_eq!(ends(&mut lab), [200, 0]);
    // Deleting a table drops its pending removals.
    lab.ok("ip table add 7\nip route add 192.0.2.0/24 table 7 via 10.0.1.2 test1");
    for n in 0..ROUTES {
        let prefix = Ipv4Prefix::host(0x6400_0000 + n);
        add_route(&mut lab.c, TableId(7), prefix, vec![path], false).expect("a route");
    }
    let over_two = vec![Path::connected(lab.sw_if(2))];
    for n in 0..ROUTES {
        let prefix = Ipv4Prefix::host(0x6500_0000 + n);
        add_route(&mut lab.c, TableId(7), prefix, over_two.clone(), false).expect("a route");
    }
    let test2 = lab.sw_if(2);
    thalweg_device::interface::delete(&mut lab.c, test2).expect("delete");
    assert!(!lab.c.state::<Ip4>().borrow().is_resolved());
    lab.ok("ip table del 7\nip table add 7");
    assert!(lab.c.state::<Ip4>().borrow().is_resolved());
    lab.c.run_once(Some(std::time::Duration::ZERO));
    lab.close();
}

#[test]
fn a_route_looks_on_in_another_table() {
    let mut lab = router();
    lab.ok("ip table add 7\nip route add 192.0.2.0/24 table 7 via 10.0.1.2 test1\n\
         ip table unreachables 0 on");
    let look = |table| vec![Path::special(PathKind::Lookup(table))];
    add_route(&mut lab.c, TableId(0), prefix("192.0.2.0/23"), look(TableId(7)), false)
        .expect("a route");
    let packet = |dst: [u8; 4]| framed(0, 2, &udp(ip(0, 2), dst.into(), 8).build());
    lab.receive(0, vec![packet([192, 0, 2, 1]); 20]);
    let sent = lab.sent();
    assert_eq!(sent.len(), 20);
    sent.iter().for_each(|(_, frame)| _ = sound(1, 2, frame));
    lab.receive(0, vec![packet([192, 0, 3, 1])]);
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).code, 0, "there is no route");
    add_route(&mut lab.c, TableId(7), prefix("192.0.3.0/24"), look(TableId(0)), false)
        .expect("a route");
    lab.receive(0, vec![packet([192, 0, 3, 1])]);
    let why = "too many ip4 look-ups of one packet";
    assert_eq!((lab.sent().len(), lab.count("ip4-lookup", why)), (0, 1), "a circle");
    assert_eq!(lab.count("ip4-lookup", "drop route"), 0);
    lab.close();
}

#[test]
fn look_ups_nest_and_packets_may_come_by_another_interface() {
    let mut lab = router();
    lab.ok("ip table add 7");
    let text = lab.cli("ip route add 192.0.2.0/24 via ip4-lookup-in-table 9");
    assert!(text.contains("no IPv4 table 9"), "{text}");
    for (line, why) in [
        ("ip route add 192.0.2.0/24 via ip6-lookup-in-table 7", "is for IPv6 prefixes only"),
        // The prefix may come last.
        ("ip route add via ip6-lookup-in-table 7 192.0.2.0/24", "is for IPv6 prefixes only"),
        ("ip punt redirect add rx all via ip6-lookup-in-table 7", "is for IPv6 prefixes only"),
        ("ip route add 192.0.2.0/24 via mpls-lookup-in-table 0", "is for labels only"),
        ("ip route add 192.0.2.0/24 via l2-input-on test0", "is for labels only"),
        (
            "ip route add 192.0.2.0/24 via ip4-lookup-in-table 7 out-labels 16",
            "a route's path with `ip4-lookup-in-table' takes no `out-labels'",
        ),
    ] {
        let text = lab.cli(line);
        assert!(text.contains(why), "{line}: {text}");
    }
    lab.close();
    let mut lab = bare().start();
    lab.ok("ip table add 7\nip table add 8\nset interface ip table test2 8\n\
         set interface ip address test0 10.0.0.1/24\n\
         set interface ip address test1 10.0.1.1/24\n\
         set interface ip address test2 10.0.2.1/24\n\
         ip route add 192.0.2.0/24 via ip4-lookup-in-table 7\n\
         ip route add 192.0.2.0/25 table 7 via lookup in table 8\n\
         ip route add 192.0.2.128/25 table 7 via rx-ip4 test2\n\
         ip route add 192.0.2.0/24 table 8 via 10.0.2.2 test2");
    for n in 0..3 {
        lab.neighbor(n, ip(n, 2), host_mac(n, 2));
    }
    for last in [1, 129] {
        lab.receive_packet(0, 2, udp(ip(0, 2), [192, 0, 2, last].into(), 8));
        sound(2, 2, &lab.sent_one(2));
    }
    for (line, want) in [
        ("show ip fib 192.0.2.0/24", "deag: oper-flags:resolved,\n        ip4-lookup-in-table 7\n"),
        ("show ip fib table 7 192.0.2.0/25", "dpo-lookup: table:8"),
        ("show ip fib table 7 192.0.2.128/25", "rx-ip4 test2"),
        ("show ip fib table 7 192.0.2.128/25", "interface-rx-dpo: test2"),
    ] {
        let text = lab.cli(line);
        assert!(text.contains(want), "{line}: {text}");
    }
    // Two interfaces that send to each other: the packet goes nowhere.
    lab.ok("ip route add 198.51.100.0/24 via rx-ip4 test2\n\
         ip route add 198.51.100.0/24 table 8 via rx-ip4 test0");
    lab.receive_packet(0, 2, udp(ip(0, 2), [198, 51, 100, 1].into(), 8));
    let why = "too many ip4 look-ups of one packet";
    assert_eq!((lab.sent().len(), lab.count("ip4-lookup", why)), (0, 1));
    lab.close();
}

#[test]
fn an_interface_receives_what_a_route_says_once() {
    let mut lab = router();
    lab.ok("ip route add 192.0.2.0/24 via rx-ip4 test2\n\
            ip table add 7\nset interface ip address del test2 all\n\
            set interface ip table test2 7\nset interface ip address test2 10.0.2.1/24\n\
            ip route add 192.0.2.0/24 table 7 via 10.0.2.2 test2");
    lab.neighbor(2, ip(2, 2), host_mac(2, 2));
    let test2 = lab.sw_if(2);
    let packet = udp(ip(0, 2), [192, 0, 2, 1].into(), 8).build();
    let counted = |lab: &Lab| {
        let totals = lab.c.interface_totals(test2);
        [totals.rx_packets, totals.rx_bytes, totals.ip4]
    };
    let mut all = 0;
    for n in [1, 40] {
        lab.receive(0, vec![framed(0, 2, &packet); n]);
        assert_eq!(lab.sent().len(), n);
        all += n as u64;
        assert_eq!(counted(&lab), [all, all * packet.len() as u64, all]);
    }
    // One that is down, or has no IPv4, receives none.
    lab.up(2, false);
    lab.receive(0, vec![framed(0, 2, &packet); 5]);
    let why = "interface that is to receive the packet is down";
    assert_eq!((lab.sent().len(), lab.count("interface-rx-dpo-ip4", why)), (0, 5));
    assert_eq!(counted(&lab)[0], all);
    lab.up(2, true);
    lab.ok("set interface ip address del test2 all");
    lab.receive(0, vec![framed(0, 2, &packet); 5]);
    let why = "ip4 is not enabled on the interface";
    assert_eq!((lab.sent().len(), lab.count("ip4-not-enabled", why)), (0, 5));
    lab.close();
}

#[test]
fn addresses_have_routes_while_their_interface_is_up() {
    let mut lab = router();
    let has = |lab: &mut Lab| lab.cli("show ip fib table 0 10.0.1.1/32").contains("dpo-receive");
    assert!(has(&mut lab));
    lab.up(1, false);
    assert!(!has(&mut lab));
    // Another one added meanwhile waits with them; one that goes does not come back.
    lab.ok("set interface ip address test1 10.1.1.1/24\n\
         set interface ip address test1 10.1.2.1/24\n\
         set interface ip address del test1 10.1.2.1/24");
    let text = lab.cli("show ip fib table 0");
    assert!(!text.contains("10.1."), "{text}");
    lab.receive_packet(0, 2, Packet::new().ipv4(ip(0, 2), ip(1, 1)).icmp_echo_request(1, 1));
    assert!(lab.sent().is_empty());
    lab.up(1, true);
    assert!(has(&mut lab));
    let text = lab.cli("show ip fib table 0");
    assert!(text.contains("10.1.1.0/24") && !text.contains("10.1.2."), "{text}");
    lab.receive_packet(0, 2, Packet::new().ipv4(ip(0, 2), ip(1, 1)).icmp_echo_request(1, 1));
    sound(0, 2, &lab.sent_one(0));
    lab.close();
}

/// Headers with one and two tags, and none of a sub-interface, alone and mixed with others.
#[test]
fn tagged_headers_leave_in_frames_as_alone() {
    let mut lab = router();
    let (one, two) = ([0x81, 0, 0, 7], [0x88, 0xa8, 0, 5, 0x81, 0, 0, 7]);
    let (outer, inner, exact) = (VlanTag::dot1ad(5), VlanTag::dot1q(7), true);
    let matches = [
        (&[][..], TagMatch::Untagged),
        (&one, TagMatch::Outer { tag: inner, exact }),
        (&two, TagMatch::Pair { outer, inner, exact }),
    ];
    // Ways out: those of the ports, and three sub-interfaces of each, with network 10.N.ID.0/24.
    let mut ways = vec![(lab.sw_if(1), 1, &[][..]), (lab.sw_if(2), 2, &[])];
    for n in 1..3u8 {
        for (id, (tags, matches)) in (1..).zip(matches) {
            let port = lab.sw_if(n);
            let sub = interface::create_sub(&mut lab.c, port, id, matches).expect("one more");
            interface::set_admin(&mut lab.c, sub, true).expect("up");
            lab.ok(&format!("set interface ip address test{n}.{id} 10.{n}.{id}.1/24"));
            for host in 2..=4 {
                let flags =
                    thalweg_feat_neighbor::NeighborFlags { is_static: true, ..Default::default() };
                let (ip, mac) = (Ipv4Addr::new(10, n, id as u8, host), host_mac(n, host));
                thalweg_feat_neighbor::set(&mut lab.c, sub, ip.into(), MacAddr(mac.0), flags)
                    .expect("neighbour");
            }
            ways.push((sub, n, tags));
        }
    }
    let network = |way: usize| match way {
        0 | 1 => [10, 0, way as u8 + 1],
        _ => [10, (way as u8 - 2) / 3 + 1, (way as u8 - 2) % 3 + 1],
    };
    let packets = |chosen: &[usize]| -> Vec<Vec<u8>> {
        let to = |i: usize| {
            let [a, b, c] = network(chosen[i % chosen.len()]);
            Ipv4Addr::new(a, b, c, 2 + (i % 3) as u8)
        };
        (0..40).map(|i| framed(0, 2, &udp(ip(0, 2), to(i), i).build())).collect()
    };
    let all: Vec<usize> = (0..ways.len()).collect();
    for chosen in [&[3][..], &[4], &[3, 6], &[4, 7], &[3, 1], &[4, 3], &[0, 1], &[2, 0], &all] {
        for size in [1, 40] {
            let sent_by = |lab: &Lab| -> Vec<u64> {
                ways.iter().map(|way| lab.c.interface_totals(way.0).tx_packets).collect()
            };
            let before = sent_by(&lab);
            packets(chosen).chunks(size).for_each(|frame| lab.receive(0, frame.to_vec()));
            let (sent, after) = (lab.sent(), sent_by(&lab));
            assert_eq!(sent.len(), 40);
            let mut count = vec![0; ways.len()];
            for (port, bytes) in sent {
                let (mac, rest) = bytes.split_at(12);
                let n = 1 + u8::from(port == lab.sw_if(2));
                let of = |tags: &[u8]| {
                    let plain = [mac, rest.strip_prefix(tags)?].concat();
                    plain[12..].starts_with(&[8, 0]).then(|| sound(n, mac[5], &plain).dst())
                };
                let way = all.iter().find(|way| {
                    let [a, b, c] = network(**way);
                    of(ways[**way].2).is_some_and(|dst| dst.octets()[..3] == [a, b, c])
                });
                let way = *way.expect("the tags of its way");
                assert_eq!(ways[way].1, n);
                count[way] += 1;
                // A port counts what its sub-interfaces send.
                count[usize::from(n) - 1] += u64::from(way > 1);
            }
            let counted: Vec<u64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
            assert_eq!(counted, count, "{chosen:?} {size}");
        }
    }
    lab.close();
}

/// Frames whose routes are groups take the same paths with and without kernels.
#[test]
fn flows_stay_on_their_paths_in_frames_of_any_size() {
    let mut lab = router();
    lab.ok("ip route add 192.0.2.0/24 via 10.0.1.2\n\
         ip route add 198.51.100.0/24 via 10.0.1.2 test1 via 10.0.2.2 test2 via 10.0.2.3 test2\n\
         ip route add 203.0.113.0/24 via 198.51.100.9 weight 3 via 10.0.1.3 test1");
    let packets: Vec<Vec<u8>> = (0..240u32)
        .map(|n| {
            let dst = [[192, 0, 2, 1], [198, 51, 100, 1], [203, 0, 113, 1]][n as usize % 3];
            let packet = Packet::new().ipv4(ip(0, 2), dst.into());
            let packet =
                if n % 5 == 0 { packet.tcp(n as u16, 80) } else { packet.udp(n as u16, 53) };
            framed(0, 2, &packet.payload(&n.to_be_bytes()).build())
        })
        .collect();
    let by_packet = |lab: &mut Lab, size: usize| {
        let mut all = BTreeMap::new();
        for frame in packets.chunks(size) {
            lab.receive(0, frame.to_vec());
            for (sw_if, bytes) in lab.sent() {
                all.insert(bytes[bytes.len() - 4..].to_vec(), (sw_if, bytes[..6].to_vec()));
            }
        }
        all
    };
    let alone = by_packet(&mut lab, 1);
    assert_eq!(alone.len(), packets.len());
    let ways: BTreeSet<_> = alone.values().cloned().collect();
    assert_eq!(ways.len(), 4, "each next hop is used");
    for size in [4, 17, 240] {
        assert_eq!(by_packet(&mut lab, size), alone, "{size} at a time");
    }
    lab.close();
}

#[test]
fn an_interface_with_many_routes_goes_in_slices() {
    const ROUTES: u32 = 40_000;
    let mut lab = router();
    let via = |lab: &Lab, n: u8| Path::via(Ipv4Addr::new(10, 0, n, 2), Some(lab.sw_if(n)));
    let (one, both) = (vec![via(&lab, 1)], vec![via(&lab, 1), via(&lab, 2)]);
    let host = |n: u32| Ipv4Prefix::host(0x6400_0000 + n);
    for n in 0..ROUTES {
        let paths = if n % 2 == 0 { one.clone() } else { both.clone() };
        add_route(&mut lab.c, TableId(0), host(n), paths, false).expect("a route");
    }
    // Less specific routes take over, and recursive routes follow.
    lab.ok("ip route add 100.0.0.0/16 via 10.0.2.3 test2\n\
         ip route add 192.0.2.0/24 via 100.0.0.0\nip route add 198.51.100.0/24 via 100.0.0.1");
    let count = lab.c.state::<Ip4>().borrow().route_count(TableId(0));
    let test1 = lab.sw_if(1);
    thalweg_device::interface::delete(&mut lab.c, test1).expect("delete");
    {
        let ip4 = lab.c.state::<Ip4>();
        let ip4 = ip4.borrow();
        assert!(!ip4.is_resolved());
        // Deleted routes are hidden, though most are still there.
        assert!(ip4.route_count(TableId(0)) > count - ROUTES as usize / 2);
        assert!((0..ROUTES).step_by(2).all(|n| ip4.route(TableId(0), host(n)).is_none()));
        let left = (1..ROUTES).step_by(2).map(|n| ip4.route(TableId(0), host(n)).expect("a route"));
        assert!(left.into_iter().all(|r| r.paths == both[1..]));
        assert_eq!(ip4.lookup(TableId(0), 0x6400_0000).map(|r| r.prefix.len()), Some(16));
    }
    let gone = del_route(&mut lab.c, TableId(0), host(0), &[]);
    assert!(matches!(gone, Err(RouteError::NoRoute { .. })), "{gone:?}");
    // An interface comes back, perhaps with the same index, and one of its routes.
    lab.interface(1);
    let back = vec![via(&lab, 1)];
    add_route(&mut lab.c, TableId(0), host(2), back.clone(), false).expect("a route");
    lab.until("routes to be resolved", |lab| lab.c.state::<Ip4>().borrow().is_resolved());
    let view =
        lab.c.state::<Ip4>().borrow().route(TableId(0), host(2)).expect("the route that came back");
    assert_eq!(view.paths, back);
    // The interface's subnet, broadcast, own and neighbour routes are deleted, too.
    let left = lab.c.state::<Ip4>().borrow().route_count(TableId(0));
    assert!(count - left >= ROUTES as usize / 2 - 1 + 4 && count - left < ROUTES as usize / 2 + 50);
    for dst in [[100, 0, 0, 0], [100, 0, 0, 4], [100, 0, 0, 1], [192, 0, 2, 1], [198, 51, 100, 1]] {
        lab.receive_packet(0, 2, udp(ip(0, 2), dst.into(), 8));
        let host = if dst[..3] == [100, 0, 0] && dst[3] % 2 == 1 { 2 } else { 3 };
        let host = if dst[0] == 198 { 2 } else { host };
        sound(2, host, &lab.sent_one(2));
    }
    lab.close();
}

#[test]
fn an_interface_that_goes_takes_its_routes_along() {
    let mut lab = router();
    lab.ok("ip route add 192.0.2.0/24 via 10.0.1.2 test1 via 10.0.2.2 test2\n\
         ip route add 198.51.100.0/24 via 10.0.1.2 test1\n\
         ip route add 203.0.113.0/24 via test1");
    let test1 = lab.sw_if(1);
    thalweg_device::interface::delete(&mut lab.c, test1).expect("delete");
    let fib = lab.cli("show ip fib");
    assert!(fib.contains("192.0.2.0/24\n"), "{fib}");
    for gone in ["198.51.100.0", "203.0.113.0", "10.0.1."] {
        assert!(!fib.contains(gone), "{gone} in {fib}");
    }
    lab.receive_packet(0, 2, udp(ip(0, 2), [192, 0, 2, 1].into(), 8));
    sound(2, 2, &lab.sent_one(2));
    // An interface with the same name comes back without addresses.
    lab.interface(1);
    lab.ok("set interface ip address test1 10.0.1.1/24");
    lab.neighbor(1, ip(1, 2), host_mac(1, 2));
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(1, 2), 8));
    sound(1, 2, &lab.sent_one(1));
    lab.close();
}

#[test]
fn deleting_what_shares_a_prefix_leaves_the_rest() {
    let mut lab = router();
    // A static route for a connected prefix loses to the interface's.
    lab.ok("ip route add 10.0.1.0/24 via 10.0.2.2 test2");
    let source = |lab: &Lab, p: &str| {
        let ip4 = lab.c.state::<Ip4>();
        ip4.borrow().route(TableId(0), prefix(p)).map(|v| v.source)
    };
    assert_eq!(source(&lab, "10.0.1.0/24"), Some(Source::Interface));
    lab.ok("set interface ip address del test1 all");
    assert_eq!(source(&lab, "10.0.1.0/24"), Some(Source::Static));
    lab.ok("ip route del 10.0.1.0/24");
    assert_eq!(source(&lab, "10.0.1.0/24"), None);
    // Two addresses in one subnet.
    lab.ok(
        "set interface ip address test1 10.0.1.1/24\nset interface ip address test1 10.0.1.9/24",
    );
    lab.ok("set interface ip address del test1 10.0.1.1/24");
    assert_eq!(source(&lab, "10.0.1.0/24"), Some(Source::Interface));
    assert_eq!(source(&lab, "10.0.1.1/32"), None);
    lab.ok("set interface ip address del test1 10.0.1.9/24");
    assert_eq!(source(&lab, "10.0.1.0/24"), None);
    lab.close();
}

#[test]
fn a_hundred_thousand_routes_come_and_go() {
    let mut lab = router();
    lab.ok("ip table unreachables 0 on");
    let before = lab.c.state::<Ip4>().borrow().route_count(TableId(0));
    let text = lab.run("ip route add count 100000 20.0.0.0/24 via 10.0.1.2", None, |_| {});
    assert!(text.ends_with(" routes/sec\n"), "{text}");
    let count = |lab: &Lab| lab.c.state::<Ip4>().borrow().route_count(TableId(0));
    assert_eq!(count(&lab), before + 100_000);
    for dst in [[20, 0, 0, 1], [20, 77, 3, 4], [21, 134, 159, 255]] {
        lab.receive_packet(0, 2, udp(ip(0, 2), dst.into(), 8));
        sound(1, 2, &lab.sent_one(1));
    }
    lab.receive_packet(0, 2, udp(ip(0, 2), [21, 134, 160, 0].into(), 8));
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).code, 0);
    // All are rewritten when their next hop moves.
    lab.ok("ip route add 10.0.1.2/32 via 10.0.2.2 test2");
    lab.receive_packet(0, 2, udp(ip(0, 2), [20, 77, 3, 4].into(), 8));
    sound(2, 2, &lab.sent_one(2));
    let list = lab.cli("show ip fib");
    let left = format!(
        "... {} more routes: `show ip fib all' lists, `summary' counts them",
        count(&lab) - 10_000
    );
    assert!(list.contains(&left), "{}", &list[list.len() - 200..]);
    let all = lab.run("show ip fib all | count", None, |_| {});
    assert_eq!(all, format!("Count: {} lines\n", 1 + 4 * count(&lab)));
    lab.run("ip route del count 100000 20.0.0.0/24", None, |_| {});
    lab.ok("ip route del 10.0.1.2/32");
    assert_eq!(count(&lab), before);
    let text = lab.run("ip route del count 3 20.0.0.0/24", None, |_| {});
    assert!(text.contains("no route 20.0.0.0/24 in table 0; the 0 routes before it"), "{text}");
    lab.close();
}

fn config() -> Config {
    Config { cases: 200, failure_persistence: None, ..Config::default() }
}

/// The outcome of a route as seen from outside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum End {
    Special(Dpo),
    Hop(SwIfIndex, Ipv4Addr),
    Link(SwIfIndex),
}

fn ends(lab: &Lab, dpo: Dpo) -> Vec<End> {
    let f = lab.c.state::<Forwarding>();
    let f = f.borrow();
    let one = |dpo| match f.owner(f.table().resolve(dpo, || 0)) {
        Some((i, Some(IpAddr::V4(nh)))) => End::Hop(i, nh),
        Some((i, _)) => End::Link(i),
        None => End::Special(f.table().resolve(dpo, || 0)),
    };
    let mut all: Vec<End> = f.members(dpo).iter().map(|m| one(m.dpo)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn special(kind: PathKind) -> Dpo {
    match kind {
        PathKind::Local => LOCAL,
        PathKind::Drop | PathKind::Normal => DROP,
        PathKind::Unreachable => UNREACHABLE,
        PathKind::Prohibit => PROHIBIT,
        PathKind::Lookup(_) | PathKind::Group(_) | PathKind::InterfaceRx => panic!("{kind:?}"),
    }
}

fn end_of(p: &Path) -> End {
    match (p.kind, p.next_hop, p.sw_if) {
        (PathKind::Normal, Some(IpAddr::V4(nh)), Some(i)) => End::Hop(i, nh),
        // Connected: 10.0.n.x is behind interface n + 1.
        (PathKind::Normal, Some(IpAddr::V4(nh)), None) => {
            End::Hop(SwIfIndex(u32::from(nh.octets()[2]) + 1), nh)
        }
        (PathKind::Normal, None, Some(i)) => End::Link(i),
        (kind, ..) => End::Special(special(kind)),
    }
}

#[derive(Clone, Debug)]
enum Op {
    Add(Ipv4Prefix, Vec<Path>),
    Replace(Ipv4Prefix, Vec<Path>),
    Delete(Ipv4Prefix),
    DeletePath(Ipv4Prefix, Path),
    Look(u32),
}

fn any_prefix() -> impl Strategy<Value = Ipv4Prefix> {
    // Few bits, so that prefixes collide.
    (0u32..16, prop::sample::select(vec![0u8, 7, 8, 16, 23, 24, 25, 31, 32])).prop_map(
        |(n, len)| {
            let addr = 0x1400_0000 | (n & 3) << 30 >> 7 | (n & 4) << 14 | (n & 8) << 4;
            Ipv4Prefix::new(addr, len).expect("a length")
        },
    )
}

fn any_path() -> impl Strategy<Value = Path> {
    let hop = (0u8..3, 2u8..5, any::<bool>(), 1u8..4).prop_map(|(n, host, named, weight)| Path {
        weight,
        ..Path::via(ip(n, host), named.then_some(SwIfIndex(u32::from(n) + 1)))
    });
    let end = prop::sample::select(vec![
        PathKind::Drop,
        PathKind::Local,
        PathKind::Unreachable,
        PathKind::Prohibit,
    ]);
    prop_oneof![
        6 => hop,
        1 => (1u32..4).prop_map(SwIfIndex).prop_map(Path::connected),
        2 => end.prop_map(Path::special),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    let paths = || prop::collection::vec(any_path(), 1..4);
    prop_oneof![
        4 => (any_prefix(), paths()).prop_map(|(p, l)| Op::Add(p, l)),
        2 => (any_prefix(), paths()).prop_map(|(p, l)| Op::Replace(p, l)),
        2 => any_prefix().prop_map(Op::Delete),
        2 => (any_prefix(), any_path()).prop_map(|(p, l)| Op::DeletePath(p, l)),
        3 => (0u32..1 << 9).prop_map(|n| Op::Look(0x1400_0000 | (n & 7) << 22 | (n >> 3 & 7) << 14
            | n >> 6 << 5)),
    ]
}

type Model = BTreeMap<Ipv4Prefix, Vec<Path>>;

fn same(a: &Path, b: &Path) -> bool {
    (a.kind, a.next_hop, a.sw_if) == (b.kind, b.next_hop, b.sw_if)
}

fn apply(lab: &mut Lab, model: &mut Model, op: &Op) -> Result<(), TestCaseError> {
    match op {
        Op::Add(p, paths) => {
            prop_assert!(add_route(&mut lab.c, TableId(0), *p, paths.clone(), false).is_ok());
            let old = model.remove(p).unwrap_or_default();
            let normal = |p: &Path| p.kind == PathKind::Normal;
            let mut new = paths.clone();
            if paths.iter().all(normal) {
                let keep =
                    old.into_iter().filter(|o| normal(o) && !paths.iter().any(|n| same(n, o)));
                new.extend(keep);
            }
            model.insert(*p, new);
        }
        Op::Replace(p, paths) => {
            prop_assert!(add_route(&mut lab.c, TableId(0), *p, paths.clone(), true).is_ok());
            model.insert(*p, paths.clone());
        }
        Op::Delete(p) => {
            let done = del_route(&mut lab.c, TableId(0), *p, &[]);
            prop_assert_eq!(done.is_ok(), model.remove(p).is_some());
        }
        Op::DeletePath(p, path) => {
            let done = del_route(&mut lab.c, TableId(0), *p, &[*path]);
            let gone = |o: &Path| {
                (o.kind, o.next_hop) == (path.kind, path.next_hop)
                    && (path.sw_if.is_none() || o.sw_if == path.sw_if)
            };
            let had = model.get_mut(p).is_some_and(|l| {
                let n = l.len();
                l.retain(|o| !gone(o));
                l.len() < n
            });
            prop_assert_eq!(done.is_ok(), had);
            model.retain(|_, l| !l.is_empty());
        }
        Op::Look(addr) => look(lab, model, *addr)?,
    }
    Ok(())
}

fn look(lab: &Lab, model: &Model, addr: u32) -> Result<(), TestCaseError> {
    let want = model.iter().filter(|(p, _)| p.contains(addr)).max_by_key(|(p, _)| p.len());
    let found = lab.c.state::<Ip4>().borrow().lookup(TableId(0), addr);
    let Some((p, paths)) = want else {
        prop_assert!(found.is_none_or(|v| v.source == Source::Default));
        return Ok(());
    };
    let found = found.expect("a route");
    prop_assert_eq!(found.prefix, *p);
    let mut want: Vec<End> = paths.iter().map(end_of).collect();
    want.sort_unstable();
    want.dedup();
    prop_assert_eq!(ends(lab, found.dpo), want);
    Ok(())
}

#[test]
fn any_sequence_of_changes_agrees_with_a_plain_table() {
    let lab = RefCell::new(router());
    // Connected routes only; deleting the others must release everything.
    let entries = |lab: &Lab| lab.c.state::<Forwarding>().borrow().len();
    let before = entries(&lab.borrow());
    let mut runner = TestRunner::new(config());
    let run = runner.run(&prop::collection::vec(any_op(), 1..60), |ops| {
        let mut lab = lab.borrow_mut();
        let mut model = Model::new();
        let mut done = Ok(());
        for op in &ops {
            done = done.and_then(|()| apply(&mut lab, &mut model, op));
        }
        // The default route's objects belong to others.
        for p in model.keys().filter(|p| p.len() > 0) {
            done = done.and_then(|()| look(&lab, &model, p.addr()));
            done = done.and_then(|()| look(&lab, &model, p.last()));
        }
        for p in model.into_keys() {
            del_route(&mut lab.c, TableId(0), p, &[]).expect("delete");
        }
        done?;
        prop_assert_eq!(entries(&lab), before, "forwarding entries are left over");
        Ok(())
    });
    run.expect("agreement");
    lab.into_inner().close();
}

/// A change for the model of recursive routes.
#[derive(Clone, Debug)]
enum Change {
    Set(usize, usize),
    Delete(usize),
    /// Adds or removes the address of `test2`.
    Address(bool),
}

/// Routes and the next hops that each may have.
fn choices() -> [(Ipv4Prefix, Vec<Path>); 4] {
    let hop = |a: [u8; 4]| Path::via(a, None);
    [
        (prefix("40.0.0.0/16"), vec![hop([30, 0, 0, 1]), hop([35, 1, 1, 1])]),
        (
            prefix("30.0.0.0/24"),
            vec![
                hop([10, 0, 1, 2]),
                hop([10, 0, 2, 2]),
                hop([35, 0, 0, 1]),
                Path::special(PathKind::Drop),
                Path::connected(SwIfIndex(2)),
            ],
        ),
        (prefix("30.0.0.1/32"), vec![hop([10, 0, 2, 99]), hop([40, 0, 0, 1])]),
        (prefix("35.0.0.0/8"), vec![hop([10, 0, 2, 3]), hop([10, 0, 1, 3]), hop([30, 0, 0, 9])]),
    ]
}

/// Resolves from scratch.
fn resolve(model: &Model, test2: bool, path: &Path, depth: u32) -> Option<End> {
    let (PathKind::Normal, Some(IpAddr::V4(nh))) = (path.kind, path.next_hop) else {
        return Some(end_of(path));
    };
    if let [10, 0, n @ 1..=2, _] = nh.octets() {
        return (n == 1 || test2).then_some(End::Hop(SwIfIndex(u32::from(n) + 1), nh));
    }
    let covering = model.iter().filter(|(p, _)| p.contains(nh.to_bits()));
    let (_, paths) = covering.max_by_key(|(p, _)| p.len())?;
    let next = paths[0];
    match (next.kind, next.next_hop, next.sw_if) {
        _ if depth == 0 || next.next_hop == Some(nh.into()) => None,
        (PathKind::Normal, None, Some(i)) => Some(End::Hop(i, nh)),
        (PathKind::Normal, ..) => resolve(model, test2, &next, depth - 1),
        _ => None,
    }
}

fn change(
    lab: &mut Lab,
    (model, test2): (&mut Model, &mut bool),
    what: &Change,
) -> Result<(), TestCaseError> {
    match what {
        Change::Set(i, j) => {
            let (p, paths) = &choices()[*i];
            let path = paths[j % paths.len()];
            // The path may lead nowhere.
            let done = add_route(&mut lab.c, TableId(0), *p, vec![path], true);
            prop_assert!(done.is_ok(), "{:?}", done);
            model.insert(*p, vec![path]);
        }
        Change::Delete(i) => {
            let p = choices()[*i].0;
            let done = del_route(&mut lab.c, TableId(0), p, &[]);
            prop_assert_eq!(done.is_ok(), model.remove(&p).is_some());
        }
        Change::Address(on) if on == test2 => {}
        Change::Address(on) => {
            let sw_if = lab.sw_if(2);
            let done = match on {
                true => address::add(&mut lab.c, sw_if, ip(2, 1).to_bits(), 24),
                false => address::remove(&mut lab.c, sw_if, ip(2, 1).to_bits(), 24),
            };
            prop_assert!(done.is_ok());
            *test2 = *on;
        }
    }
    for (p, paths) in model.iter() {
        let want = resolve(model, *test2, &paths[0], 8).unwrap_or(End::Special(UNRESOLVED));
        let found = lab.c.state::<Ip4>().borrow().route(TableId(0), *p).expect("the route");
        prop_assert_eq!(ends(lab, found.dpo), vec![want], "{} after {:?}", p, what);
    }
    Ok(())
}

#[test]
fn recursive_routes_are_always_as_if_resolved_from_scratch() {
    let lab = RefCell::new(router());
    let entries = |lab: &Lab| lab.c.state::<Forwarding>().borrow().len();
    let before = entries(&lab.borrow());
    let any = prop_oneof![
        5 => (0usize..4, 0usize..5).prop_map(|(i, j)| Change::Set(i, j)),
        2 => (0usize..4).prop_map(Change::Delete),
        2 => any::<bool>().prop_map(Change::Address),
    ];
    let mut runner = TestRunner::new(config());
    let run = runner.run(&prop::collection::vec(any, 1..40), |changes| {
        let mut lab = lab.borrow_mut();
        let (mut model, mut test2) = (Model::new(), true);
        let mut done = Ok(());
        for what in &changes {
            done = done.and_then(|()| change(&mut lab, (&mut model, &mut test2), what));
        }
        for (p, _) in choices() {
            let _ = del_route(&mut lab.c, TableId(0), p, &[]);
        }
        if !test2 {
            let sw_if = lab.sw_if(2);
            address::add(&mut lab.c, sw_if, ip(2, 1).to_bits(), 24).expect("address");
        }
        done?;
        prop_assert_eq!(entries(&lab), before, "forwarding entries are left over");
        Ok(())
    });
    run.expect("agreement");
    lab.into_inner().close();
}

#[test]
fn next_hops_that_can_never_lead_anywhere_are_refused() {
    let mut lab = router();
    let mut add =
        |p: &str, path: Path| add_route(&mut lab.c, TableId(0), prefix(p), vec![path], false);
    let via = |a: [u8; 4]| Path::via(a, None);
    let wrong = add("192.0.2.0/24", Path::via([10, 0, 1, 2], Some(SwIfIndex(99))));
    assert!(matches!(wrong, Err(RouteError::Rib(RibError::Device(_)))), "{wrong:?}");
    assert!(add("192.0.2.0/24", via([10, 0, 1, 2])).is_ok());
    let wrong = del_route(&mut lab.c, TableId(0), prefix("192.0.2.0/24"), &[via([10, 0, 1, 3])]);
    assert!(matches!(wrong, Err(RouteError::NoRoute { .. })), "{wrong:?}");
    lab.close();
}
