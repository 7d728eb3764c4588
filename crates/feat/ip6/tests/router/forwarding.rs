//! Packets through the router.

use crate::{bare, link_local, router};
use std::collections::HashMap;
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip6::{at, framed, icmp, ip, link, sound, udp};
use thalweg_wire::build::Packet;

#[test]
fn a_packet_passes_with_one_hop_less() {
    let mut lab = router();
    let packet = udp(ip(0, 2), ip(1, 2), 100).ttl(17).build();
    lab.receive(0, vec![framed(0, 2, &packet)]);
    let out = lab.sent_one(1);
    assert_eq!(sound(1, 2, &out).hop_limit(), 16);
    let mut want = packet;
    want[7] = 16;
    assert_eq!(out[14..], want);
    lab.close();
}

#[test]
fn an_interface_receives_what_a_route_says_once() {
    let mut lab = router();
    lab.ok("ip route add 2001:db8:9::/48 via rx-ip6 test2\n\
            ip6 table add 7\nset interface ip address del test2 all\n\
            set interface ip6 table test2 7\n\
            set interface ip address test2 2001:db8:0:2::1/64\n\
            ip route add 2001:db8:9::/48 table 7 via 2001:db8:0:2::2 test2");
    lab.neighbor(2, ip(2, 2), host_mac(2, 2));
    lab.sent();
    let (test2, packet) = (lab.sw_if(2), udp(ip(0, 2), at("2001:db8:9::1"), 8).build());
    let before = lab.c.interface_totals(test2);
    let counted = |lab: &thalweg_device::testing::Lab| {
        let totals = lab.c.interface_totals(test2);
        [totals.rx_packets - before.rx_packets, totals.ip6 - before.ip6]
    };
    let mut all = 0;
    for n in [1, 40] {
        lab.receive(0, vec![framed(0, 2, &packet); n]);
        assert_eq!(lab.sent().len(), n);
        all += n as u64;
        assert_eq!(counted(&lab), [all; 2]);
    }
    lab.up(2, false);
    lab.receive(0, vec![framed(0, 2, &packet); 5]);
    let why = "interface that is to receive the packet is down";
    assert_eq!((lab.sent().len(), lab.count("interface-rx-dpo-ip6", why)), (0, 5));
    assert_eq!(counted(&lab)[0], all);
    lab.up(2, true);
    // Two that send to each other: the packet goes nowhere.
    lab.sent();
    lab.ok("ip route add 2001:db8:8::/48 via rx-ip6 test2\n\
            ip route add 2001:db8:8::/48 table 7 via rx-ip6 test0");
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), at("2001:db8:8::1"), 8).build())]);
    let why = "too many ip6 look-ups of one packet";
    assert_eq!((lab.sent().len(), lab.count("ip6-lookup", why)), (0, 1));
    // The packet that two tables look up in each other goes nowhere, too.
    lab.ok("ip route add 2001:db8:7::/48 via ip6-lookup-in-table 7\n\
            ip route add 2001:db8:7::/48 table 7 via ip6-lookup-in-table 0");
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), at("2001:db8:7::1"), 8).build())]);
    assert_eq!((lab.sent().len(), lab.count("ip6-lookup", why)), (0, 2));
    assert_eq!(lab.count("ip6-lookup", "drop route"), 0);
    lab.close();
}

#[test]
fn frames_of_many_packets_pass_as_single_ones_do() {
    for count in [1usize, 3, 40, 256] {
        let mut lab = router();
        lab.ok("ip route add 2001:db8:100::/40 via 2001:db8:0:2::3");
        let mut frames = Vec::new();
        for i in 0..count {
            let to = if i % 3 == 0 { at("2001:db8:1ff:7::9") } else { ip(1, 2 + (i % 3) as u8) };
            let mut frame = framed(0, 2, &udp(ip(0, 2), to, i).ttl(9).build());
            if i % 7 == 3 {
                // Padding.
                frame.extend([0xee; 9]);
            }
            if i % 11 == 5 {
                frame[14 + 7] = 1;
            }
            frames.push(frame);
        }
        let alive = frames.iter().filter(|f| f[14 + 7] > 1).count();
        lab.receive(0, frames);
        let (to_host, back) = (lab.sw_if(0), lab.sent());
        let passed = back.iter().filter(|(i, _)| *i != to_host).count();
        assert_eq!(passed, alive, "{count}");
        for (i, frame) in back.iter().filter(|(i, _)| *i != to_host) {
            let v = thalweg_wire::ipv6::Ipv6View::parse(&frame[14..]).unwrap();
            assert_eq!((v.hop_limit(), frame.len()), (8, 54 + usize::from(v.payload_len())));
            let (n, host) = match v.dst().segments()[2] {
                0x1ff => (2, 3),
                _ => (1, v.dst().segments()[7] as u8),
            };
            assert_eq!((frame[..6].to_vec(), *i), (host_mac(n, host).0.to_vec(), lab.sw_if(n)));
        }
        lab.close();
    }
}

#[test]
fn malformed_packets_are_dropped_for_their_reasons() {
    let good = udp(ip(0, 2), ip(1, 2), 20).build();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = good.clone();
        change(&mut packet);
        packet
    };
    let src = |text: &'static str| udp(at(text), ip(1, 2), 20).build();
    let dst = |text: &'static str| udp(ip(0, 2), at(text), 20).build();
    for (packet, reason) in [
        (with(&|p| p.truncate(39)), "ip6 length < 40 bytes"),
        (with(&|p| p[0] = 0x45), "ip6 version != 6"),
        (with(&|p| p[5] += 1), "ip6 length > l2 length"),
        (with(&|p| (p[4], p[5], p[6]) = (0, 0, 0)), "ip6 length > l2 length"),
        (src("ff02::1"), "ip6 multicast source address"),
        (src("::1"), "ip6 loopback source address"),
        (src("::"), "ip6 unspecified source address to a unicast address"),
        (dst("::1"), "ip6 loopback destination address"),
        (dst("::"), "ip6 unspecified destination address"),
    ] {
        // The frame comes alone, and among others.
        for others in [0, 20] {
            let mut lab = router();
            let mut frames = vec![framed(0, 2, &good); others];
            frames.push(framed(0, 2, &packet));
            lab.receive(0, frames);
            assert_eq!(lab.count("ip6-input", reason), 1, "{}", lab.cli("show errors"));
            assert_eq!(lab.sent().len(), others);
            lab.close();
        }
    }
}

#[test]
fn an_interface_without_ip6_drops_it() {
    let mut lab = bare().start();
    lab.ok("set interface ip address test1 2001:db8:0:1::1/64");
    lab.neighbor(1, ip(1, 2), host_mac(1, 2));
    let frame = framed(0, 2, &udp(ip(0, 2), ip(1, 2), 9).build());
    lab.receive(0, vec![frame.clone()]);
    assert_eq!(lab.count("ip6-not-enabled", "ip6 is not enabled on the interface"), 1);
    lab.ok("enable ip6 interface test0");
    lab.receive(0, vec![frame.clone()]);
    sound(1, 2, &lab.sent_one(1));
    lab.ok("disable ip6 interface test0");
    lab.receive(0, vec![frame.clone()]);
    assert!(lab.sent().is_empty());
    lab.ok("set interface ip address test0 2001:db8::1/64");
    lab.receive(0, vec![frame.clone()]);
    sound(1, 2, &lab.sent_one(1));
    lab.ok("set interface ip address del test0 2001:db8::1/64");
    lab.receive(0, vec![frame]);
    assert!(lab.sent().is_empty());
    lab.close();
}

#[test]
fn flows_spread_over_paths_and_stay_on_theirs() {
    let mut lab = router();
    let paths = "via 2001:db8:0:1::2 via 2001:db8:0:1::3 via 2001:db8:0:2::2 via 2001:db8:0:2::3";
    lab.ok(&format!("ip route add 2001:db8:f::/48 {paths}"));
    let to = at("2001:db8:f::9");
    let flow = |port: u16| Packet::new().ipv6(ip(0, 2), to).udp(port, 53).payload(&[1; 30]).build();
    let mut where_to: HashMap<u16, Vec<u8>> = HashMap::new();
    let mut used = HashMap::new();
    for count in [1, 64] {
        for first in (0..256).step_by(count) {
            let ports: Vec<u16> = (first..first + count).map(|p| 1000 + p as u16).collect();
            lab.receive(0, ports.iter().map(|p| framed(0, 2, &flow(*p))).collect());
            for (_, frame) in lab.sent() {
                let port = u16::from_be_bytes([frame[54], frame[55]]);
                let mac = frame[..6].to_vec();
                *used.entry(mac.clone()).or_insert(0) += 1;
                assert_eq!(where_to.entry(port).or_insert_with(|| mac.clone()), &mac);
            }
        }
    }
    assert_eq!(used.len(), 4);
    assert!(used.values().all(|n| *n > 60), "{used:?}");
    // Without ports, flow labels spread.
    let mut used = std::collections::HashSet::new();
    for label in 0..64u8 {
        let mut packet = flow(1);
        (packet[6], packet[3]) = (200, label);
        lab.receive(0, vec![framed(0, 2, &packet)]);
        used.insert(lab.sent().remove(0).1[..6].to_vec());
    }
    assert_eq!(used.len(), 4);
    lab.close();
}

#[test]
fn tables_are_apart() {
    let mut lab = bare().start();
    lab.ok("ip6 table add 7");
    for n in 0..2 {
        lab.ok(&format!("set interface ip6 table test{n} 7"));
    }
    for n in 0..3 {
        lab.ok(&format!("set interface ip address test{n} {}/64", ip(n, 1)));
        lab.neighbor(n, ip(n, 2), host_mac(n, 2));
    }
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), ip(1, 2), 9).build())]);
    sound(1, 2, &lab.sent_one(1));
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), ip(2, 2), 9).build())]);
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip6-lookup", "no route"), 1, "{}", lab.cli("show errors"));
    lab.ok("ip route add 2001:db8:0:2::/64 table 7 via ip6-lookup-in-table 0");
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), ip(2, 2), 9).build())]);
    sound(2, 2, &lab.sent_one(2));
    let text = lab.cli("show ip6 table");
    assert!(text.contains("ipv6-VRF:7"), "{text}");
    lab.close();
}

#[test]
fn what_is_too_long_is_refused_with_the_mtu() {
    let mut lab = router();
    lab.ok("set interface mtu packet 1400 test1");
    let packet = udp(ip(0, 2), ip(1, 2), 1400).ttl(17).build();
    lab.receive(0, vec![framed(0, 2, &packet)]);
    let out = lab.sent_one(0);
    let (src, message) = icmp(0, 2, &out);
    assert_eq!((src, message.kind(), message.rest()), (ip(0, 1), 2, 1400));
    assert_eq!(out.len(), 14 + 1280);
    assert_eq!(message.payload(), &packet[..1280 - 48]);
    assert_eq!(sound(0, 2, &out).hop_limit(), 255);
    // A packet as long as the MTU passes.
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), ip(1, 2), 1400 - 48).build())]);
    assert_eq!(lab.sent_one(1).len(), 1414);
    lab.close();
}

#[test]
fn packets_to_groups_and_from_link_local_addresses_stay_on_their_link() {
    let mut lab = router();
    let group = udp(ip(0, 2), at("ff05::5"), 9).build();
    lab.receive(0, vec![framed(0, 2, &group)]);
    let reason = "ip6 group not joined on the interface";
    assert_eq!(lab.count("ip6-mfib-forward-lookup", reason), 1);
    lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), at("fe80::77"), 9).build())]);
    let reason = "link-local destination address: not forwarded";
    assert_eq!(lab.count("ip6-link-local", reason), 1, "{}", lab.cli("show errors"));
    // Its sender hears that it is beyond the scope.
    lab.neighbor(0, link(2), host_mac(0, 2));
    lab.receive(0, vec![framed(0, 2, &udp(link(2), ip(1, 2), 9).build())]);
    let out = lab.sent_one(0);
    let (src, message) = icmp(0, 2, &out);
    assert_eq!((src, message.kind(), message.code()), (link_local(&lab, 0), 1, 2));
    lab.close();
}
