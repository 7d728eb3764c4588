//! The router's own errors about packets that were translated more than once, or labelled after
//! that, are about what was sent.

use crate::setup;
use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::{framed, ip};
use thalweg_device::testing::{Lab, ip6};
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv4::IcmpView;
use thalweg_wire::ipv4;
use thalweg_wire::ipv6::Ipv6View;

const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// Sends a packet of 10.0.0.2, which is answered there by an error of this type that quotes it.
#[track_caller]
fn answered(lab: &mut Lab, packet: Packet, kind: u8) {
    let packet = packet.build();
    lab.receive(0, vec![framed(0, 2, &packet)]);
    let sent = lab.sent();
    let [(sw_if, error)] = &sent[..] else { panic!("{sent:02x?}\n{}", lab.cli("show errors")) };
    assert_eq!(*sw_if, lab.sw_if(0));
    let view = ipv4::check(&error[14..]).unwrap();
    assert_eq!((view.src(), view.dst()), (ip(0, 1), ip(0, 2)));
    let icmp = IcmpView::parse(view.payload()).unwrap();
    assert_eq!((icmp.kind(), icmp.checksum_ok()), (kind, true));
    let quote = &view.payload()[8..8 + 28];
    assert_eq!(quote[12..], packet[12..28], "addresses, ports and checksum");
}

fn udp(sport: u16) -> Packet {
    Packet::new().ipv4(ip(0, 2), FAR).udp(sport, 53)
}

/// Rules that translate what goes from `test0` to the outside, which is all else, to 10.0.1.77.
const RULES: &str = "flow add 7 table=0,priority=2,ip,actions=ct(table=1,nat)
    flow add 7 table=0,priority=1,actions=normal
    flow add 7 table=1,ip,ct_state=+new,actions=ct(commit,nat(src=10.0.1.77)),normal
    flow add 7 table=1,ip,ct_state=+est,actions=normal
    set interface flow test0 7";

/// A route label and a tunnel's labels, which together make the packet too long.
#[test]
fn errors_about_labelled_packets_are_about_what_was_sent() {
    let nat44 = "nat44 plugin enable sessions 1000
        nat44 add address 192.0.2.1
        set interface nat44 in test0 out mpls-tunnel0";
    for translate in [nat44, RULES] {
        for workers in [1, 2] {
            let setup = setup().with(&thalweg_feat_mpls::FEATURE).buffers(4096);
            let mut lab = setup.workers(workers).start();
            lab.ok("mpls table add 0\nset interface mpls test1 enable");
            lab.cli("mpls tunnel add via 10.0.1.2 test1 out-labels 40 41");
            lab.ok("set interface state mpls-tunnel0 up
                 ip route add 198.51.100.0/24 via mpls-tunnel0 out-labels 17
                 set interface mtu mpls 500 test1");
            lab.ok(translate);
            lab.c.sync();
            for sport in 5000..5008 {
                answered(&mut lab, udp(sport).dont_fragment().payload_len(464), 3);
                let answers = lab.count("mpls-icmp-error", "icmp errors sent");
                assert_eq!(answers, u64::from(sport - 4999), "{}", lab.cli("show errors"));
            }
            lab.close();
        }
    }
}

#[test]
fn errors_about_labelled_packets_of_ipv6_are_about_what_was_sent() {
    let setup = setup().with(&thalweg_feat_mpls::FEATURE).buffers(4096).ip6(2..=2);
    let mut lab = setup.start();
    lab.ok("mpls table add 0\nset interface mpls test1 enable");
    lab.cli("mpls tunnel add via 10.0.1.2 test1 out-labels 40 41");
    lab.ok("set interface state mpls-tunnel0 up
         ip route add 2001:db8:f::/48 via mpls-tunnel0 out-labels 17
         set interface mtu mpls 1400 test1
         flow add 7 table=0,priority=2,ipv6,actions=ct(table=1,nat)
         flow add 7 table=0,priority=1,actions=normal
         flow add 7 table=1,ipv6,ct_state=+new,actions=ct(commit,nat(src=2001:db8:0:1::77)),normal
         flow add 7 table=1,ipv6,ct_state=+est,actions=normal
         set interface flow test0 7");
    lab.c.sync();
    lab.sent();
    let far = "2001:db8:f::1".parse().unwrap();
    let packet = Packet::new().ipv6(ip6::ip(0, 2), far).udp(5000, 53).payload_len(1344).build();
    lab.receive(0, vec![ip6::framed(0, 2, &packet)]);
    let sent = lab.sent();
    let [(_, error)] = &sent[..] else { panic!("{sent:02x?}\n{}", lab.cli("show errors")) };
    let view = Ipv6View::parse(&error[14..]).unwrap();
    assert_eq!((view.dst(), view.payload()[0]), (ip6::ip(0, 2), 2));
    assert_eq!(view.payload()[16..56], packet[8..48], "addresses and what follows");
    assert_eq!(lab.count("mpls-icmp-error", "icmp errors sent"), 1);
    lab.close();
}

/// Rules translate in two zones, one after the other.
#[test]
fn errors_about_packets_translated_twice_are_about_what_was_sent() {
    for workers in [1, 2] {
        let mut lab = setup().workers(workers).buffers(4096).start();
        lab.ok("ip route add 198.51.100.0/24 via 10.0.1.2 test1
             set interface mtu packet 600 test1
             flow add 7 table=0,priority=2,ip,actions=ct(table=1,zone=1,nat)
             flow add 7 table=0,priority=1,actions=normal
             flow add 7 table=1,ip,ct_state=+new,actions=ct(commit,zone=1,table=2,nat(src=10.0.1.77))
             flow add 7 table=1,ip,ct_state=+est,actions=goto_table:2
             flow add 7 table=2,ip,actions=ct(table=3,zone=2,nat)
             flow add 7 table=3,ip,ct_state=+new,actions=ct(commit,zone=2,nat(src=10.0.1.88)),normal
             flow add 7 table=3,ip,ct_state=+est,actions=normal
             set interface flow test0 7");
        lab.c.sync();
        for sport in 5000..5008 {
            lab.receive(0, vec![framed(0, 2, &udp(sport).build())]);
            let sent = lab.sent_one(1);
            assert_eq!(ipv4::check(&sent[14..]).unwrap().src(), Ipv4Addr::new(10, 0, 1, 88));
            answered(&mut lab, udp(sport).dont_fragment().payload_len(900), 3);
            answered(&mut lab, udp(sport).ttl(1), 11);
        }
        lab.close();
    }
}

/// Rules translate first, and NAT44 after them, perhaps on another worker.
#[test]
fn errors_about_packets_translated_by_rules_and_nat44_are_about_what_was_sent() {
    for workers in [1, 2] {
        let mut lab = setup().workers(workers).buffers(4096).start();
        lab.ok("ip route add 198.51.100.0/24 via 10.0.1.2 test1
             ip route add 10.0.1.77/32 via 10.0.0.2 test0
             set interface mtu packet 600 test1
             nat44 plugin enable sessions 1000
             nat44 add address 192.0.2.1
             set interface nat44 in test0 out test1");
        lab.ok(RULES);
        lab.c.sync();
        for sport in 5000..5016 {
            lab.receive(0, vec![framed(0, 2, &udp(sport).build())]);
            let sent = lab.sent_one(1);
            assert_eq!(ipv4::check(&sent[14..]).unwrap().src(), Ipv4Addr::new(192, 0, 2, 1));
            answered(&mut lab, udp(sport).dont_fragment().payload_len(900), 3);
        }
        lab.close();
    }
}
