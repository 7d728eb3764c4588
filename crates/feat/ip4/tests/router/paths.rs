//! Routes with many paths under traffic, next hops in other tables and of another family, counters.

use crate::{router, setup};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thalweg_device::testing::ip4::{framed, icmp_error, ip, prefix, sound, udp};
use thalweg_device::testing::{Lab, host_mac};
use thalweg_feat_ip::{Path, add_route};
use thalweg_fib::{Forwarding, TableId};
use thalweg_wire::MacAddr;

/// Frames of as many flows, by destination and port.
fn flows(n: u16) -> Vec<Vec<u8>> {
    let flow = |i: u16| {
        let [high, low] = i.to_be_bytes();
        let mut packet = udp(ip(0, 2), Ipv4Addr::new(48, 0, high, low), 20).build();
        packet[20..22].copy_from_slice(&i.to_be_bytes());
        framed(0, 2, &packet)
    };
    (0..n).map(flow).collect()
}

/// A route by all hosts behind `test1` and `test2`.
const SIX: &str = "ip route replace 48.0.0.0/8 via 10.0.1.2 test1 via 10.0.1.3 test1 \
                   via 10.0.1.4 test1 via 10.0.2.2 test2 via 10.0.2.3 test2 via 10.0.2.4 test2";

#[test]
fn flows_keep_their_path_in_frames_of_any_size() {
    let mut lab = router();
    lab.ok(SIX);
    let mut paths = Vec::new();
    for size in [256, 100, 17, 16, 3, 1] {
        for some in flows(512).chunks(size) {
            lab.receive(0, some.to_vec());
        }
        // Arrivals by flow: what of the destination is in the packet, and who got it.
        let mut sent: Vec<_> = lab.sent().into_iter().collect();
        sent.sort_by_key(|(_, frame)| frame[30..36].to_vec());
        let to: Vec<Vec<u8>> = sent.into_iter().map(|(_, frame)| frame[..6].to_vec()).collect();
        assert_eq!(to.len(), 512);
        paths.push(to);
    }
    assert!(paths.iter().all(|to| *to == paths[0]));
    for (n, host) in [1, 2].into_iter().flat_map(|n| (2..=4).map(move |host| (n, host))) {
        let share = paths[0].iter().filter(|to| to[..] == host_mac(n, host).0).count();
        assert!((50..125).contains(&share), "{share} of 512 flows by one of six paths");
    }
    lab.close();
}

#[test]
fn no_packet_is_lost_when_paths_come_and_go() {
    let mut lab = setup().workers(2).buffers(4096).start();
    lab.ok(SIX);
    let mut sent = 0;
    for round in 0..60 {
        for worker in 0..2 {
            lab.deliver_to(worker, 0, flows(400));
        }
        let host = 2 + round % 3;
        let n = 1 + round % 2;
        let verb = if round % 4 < 2 { "del" } else { "add" };
        lab.ok(&format!("ip route {verb} 48.0.0.0/8 via 10.0.{n}.{host} test{n}"));
        if round % 10 == 0 {
            lab.ok(SIX);
        }
        lab.settle();
        sent += lab.sent().len();
    }
    assert_eq!((sent, lab.dropped()), (60 * 800, 0), "{}", lab.cli("show errors"));
    lab.close();
}

#[test]
fn next_hops_are_resolved_in_the_table_that_is_named() {
    let mut lab = router();
    let objects = |lab: &Lab| lab.c.state::<Forwarding>().borrow().len();
    lab.ok(
        "ip table unreachables 0 on\nip table add 7\nip route add 99.0.0.0/8 via 10.0.2.3 test2",
    );
    lab.ok("ip route add 99.1.0.0/16 table 7 via 10.0.1.2 test1");
    let before = objects(&lab);
    lab.ok("ip route add 48.0.0.0/8 via 98.0.0.1 next-hop-table 7");
    let kept = lab.cli("show ip fib 48.0.0.0/8");
    assert!(kept.contains("unresolved: next hop 98.0.0.1 is not reachable in table 7"), "{kept}");
    lab.ok("ip route del 48.0.0.0/8");
    lab.ok("ip route add 48.0.0.0/8 via 99.1.0.1 next-hop-table 7");
    let pass = |lab: &mut Lab, n, host| {
        lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), [48, 0, 0, 1].into(), 8).build())]);
        sound(n, host, &lab.sent_one(n));
    };
    pass(&mut lab, 1, 2);
    let shown = lab.cli("show ip fib 48.0.0.0/8");
    assert!(shown.contains("via 99.1.0.1 fib:7"), "{shown}");
    // The route follows table 7, not its own.
    lab.ok("ip route replace 99.1.0.0/16 table 7 via 10.0.2.2 test2");
    pass(&mut lab, 2, 2);
    lab.ok("ip route replace 99.0.0.0/8 via 10.0.1.4 test1");
    pass(&mut lab, 2, 2);
    // A loop through both tables leads nowhere.
    lab.ok("ip route replace 99.1.0.0/16 table 7 via 48.0.0.1 next-hop-table 0");
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), [48, 0, 0, 1].into(), 8).build())]);
    assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).kind, 3);
    lab.ok("ip route replace 99.1.0.0/16 table 7 via 10.0.1.3 test1");
    pass(&mut lab, 1, 3);
    // Two of them, one in the own table.
    lab.ok("ip route add 48.0.0.0/8 via 99.2.0.1 next-hop-table 0");
    lab.ok("ip route del 48.0.0.0/8 via 99.1.0.1 next-hop-table 7");
    pass(&mut lab, 1, 4);
    lab.ok("ip route replace 48.0.0.0/8 via 99.1.0.1 next-hop-table 7");
    let refused = lab.cli("ip table del 7");
    assert!(refused.contains("next hops in table 7"), "{refused}");
    lab.ok("ip route del 48.0.0.0/8\nip route replace 99.0.0.0/8 via 10.0.2.3 test2");
    lab.ok("ip route replace 99.1.0.0/16 table 7 via 10.0.1.2 test1");
    lab.until("nothing is followed", |lab| objects(lab) == before);
    lab.ok("ip table del 7");
    lab.close();
}

#[test]
fn an_ipv6_next_hop_is_one_like_others() {
    let mut lab = router();
    lab.ok("ip table unreachables 0 on");
    let hop: IpAddr = "fe80::7".parse::<Ipv6Addr>().expect("an address").into();
    let test1 = lab.sw_if(1);
    let path = Path::via(hop, Some(test1));
    add_route(&mut lab.c, TableId(0), prefix("48.0.0.0/8"), vec![path], true).expect("a route");
    let f = lab.c.state::<Forwarding>();
    f.borrow_mut().set_neighbor(&lab.c, test1, hop, Some(MacAddr(host_mac(1, 3).0)));
    let packet = vec![framed(0, 2, &udp(ip(0, 2), [48, 0, 0, 1].into(), 8).build())];
    for _ in 0..2 {
        lab.receive(0, packet.clone());
        sound(1, 3, &lab.sent_one(1));
        lab.up(1, false);
        lab.receive(0, packet.clone());
        assert_eq!(icmp_error(0, 2, &lab.sent_one(0)).kind, 3);
        lab.up(1, true);
    }
    lab.close();
}

#[test]
fn routes_and_adjacencies_count_when_they_are_asked_to() {
    let mut lab = setup().workers(2).buffers(4096).start();
    lab.ok(SIX);
    lab.ok("ip route add 49.0.0.0/8 via 48.0.0.1\nip route add 50.0.0.0/8 drop");
    let length = flows(1)[0].len() as u64 - 14;
    lab.receive(0, flows(100));
    lab.sent();
    let shown = lab.cli("show ip fib 48.0.0.0/8");
    assert!(!shown.contains(" to:["), "{shown}");
    lab.ok("adjacency counters enable");
    for worker in 0..2 {
        for frames in [flows(200), flows(2), flows(1)] {
            lab.deliver_to(worker, 0, frames);
            lab.settle();
        }
    }
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), [50, 0, 0, 1].into(), 8).build()); 5]);
    lab.sent();
    let shown = lab.cli("show ip fib 48.0.0.0/8");
    assert!(shown.contains(&format!(" to:[406:{}]", 406 * length)), "{shown}");
    let via = shown.split(" via:[").skip(1).map(|text| {
        let (packets, rest) = text.split_once(':').expect("both");
        let bytes = rest.split_once(']').expect("an end").0;
        [packets, bytes].map(|n| n.parse::<u64>().expect("a number"))
    });
    let [packets, bytes] = via.fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
    assert_eq!([packets, bytes], [406, 406 * length], "{shown}");
    let none = lab.cli("show ip fib 50.0.0.0/8");
    assert!(none.contains(" to:[5:180]"), "{none}");
    lab.ok("adjacency counters disable");
    lab.receive(0, flows(50));
    lab.sent();
    lab.ok("adjacency counters enable");
    assert_eq!(lab.cli("show ip fib 48.0.0.0/8"), shown);
    lab.close();
}
