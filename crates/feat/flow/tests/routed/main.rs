//! Flow rules on routed interfaces, end to end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod doors;
mod leaks;
mod names;
mod own_errors;
mod subs;
mod vlans;

use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::{framed, ip, sound, udp};
use thalweg_device::testing::{Lab, Setup, ip6};
use thalweg_device::{TagMatch, VlanTag, interface};
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv4::IcmpView;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv4;
use thalweg_wire::ipv6::Ipv6View;

/// Interfaces with addresses and three hosts each.
fn setup() -> Setup {
    Lab::of(&thalweg_feat_flow::FEATURE)
        .with(&thalweg_feat_ip6::FEATURE)
        .with(&thalweg_feat_nat44::FEATURE)
        .with(&thalweg_feat_neighbor::BY_CLOCK)
        .ip4(2..=4)
}

fn router() -> Lab {
    setup().start()
}

fn mirrored(lab: &mut Lab, actions: &str) {
    lab.ok(&format!("flow add 7 'priority=1,actions={actions}'\nset interface flow test0 7"));
}

/// Returns the packets sent for one: by the route out of `test1`, and by a rule out of `test2`.
fn pass(lab: &mut Lab, packet: &[u8]) -> (Vec<u8>, Vec<u8>) {
    lab.receive(0, vec![framed(0, 2, packet)]);
    let mut sent = lab.sent();
    sent.sort();
    let [routed, mirror] = &sent[..] else { panic!("{sent:02x?}") };
    assert_eq!([routed.0, mirror.0], [1, 2].map(|n| lab.sw_if(n)));
    (routed.1.clone(), mirror.1.clone())
}

/// Routing treats a copy as it treats the packet, whatever the order of the outputs.
#[test]
fn a_copy_is_forwarded_like_the_packet() {
    for actions in ["normal,output:test2", "output:test2,normal"] {
        let mut lab = router();
        mirrored(&mut lab, actions);
        let packet = udp(ip(0, 2), ip(1, 2), 32).ttl(9).build();
        let (routed, mirror) = pass(&mut lab, &packet);
        let view = sound(1, 2, &routed);
        assert_eq!((view.ttl(), view.src()), (8, ip(0, 2)), "{actions}");
        assert_eq!(mirror, framed(0, 2, &packet), "{actions}");
        // One that may not be forwarded is refused.
        lab.receive(0, vec![framed(0, 2, &udp(ip(0, 2), ip(1, 2), 32).ttl(1).build())]);
        assert!(lab.sent().iter().all(|(sw_if, _)| *sw_if != lab.sw_if(1)), "{actions}");
        lab.close();
    }
}

/// The first packet of a flow does not leave untranslated because it was copied.
#[test]
fn a_copy_is_translated_on_the_way_out() {
    let far = Ipv4Addr::new(198, 51, 100, 7);
    for actions in ["normal,output:test2", "output:test2,normal"] {
        let mut lab = router();
        lab.ok("ip route add 198.51.100.0/24 via 10.0.1.2 test1\n\
                nat44 plugin enable sessions 1000\n\
                nat44 add address 192.0.2.1\n\
                set interface nat44 out test1 output-feature");
        lab.c.sync();
        mirrored(&mut lab, actions);
        for _ in 0..2 {
            let (routed, mirror) = pass(&mut lab, &udp(ip(0, 2), far, 32).build());
            let view = sound(1, 2, &routed);
            assert_eq!((view.src(), view.ttl()), (Ipv4Addr::new(192, 0, 2, 1), 63), "{actions}");
            assert_eq!(ipv4::check(&mirror[14..]).unwrap().src(), ip(0, 2));
        }
        lab.close();
    }
}

/// The router's own errors about packets that rules have translated reach who sent these, about
/// what was sent.
#[test]
fn own_errors_are_about_what_was_sent() {
    for workers in [1, 2] {
        let mut lab = setup().workers(workers).buffers(4096).start();
        let outside = Ipv4Addr::new(10, 0, 1, 77);
        lab.ok("set interface mtu packet 1280 test1
             flow add 7 table=0,priority=2,ip,actions=ct(table=1,nat)
             flow add 7 table=0,priority=1,actions=normal
             flow add 7 table=1,ip,ct_state=+new,in_port=test0,actions=ct(commit,nat(src=10.0.1.77)),normal
             flow add 7 table=1,ip,ct_state=+est,actions=normal
             set interface flow test0 7
             set interface flow test1 7");
        let ping = |n: u16| Packet::new().ipv4(ip(0, 2), ip(1, 2)).icmp_echo_request(n, 1);
        for n in 1..9 {
            let large = ping(n).dont_fragment().payload_len(1372);
            for (packet, kind) in [(large, (3, 4)), (ping(n).ttl(1), (11, 0))] {
                let packet = packet.build();
                lab.receive(0, vec![framed(0, 2, &packet)]);
                let sent = lab.sent();
                let [(sw_if, error)] = &sent[..] else { panic!("{workers}: {sent:02x?}") };
                assert_eq!(*sw_if, lab.sw_if(0));
                let view = ipv4::check(&error[14..]).unwrap();
                assert_eq!((view.src(), view.dst()), (ip(0, 1), ip(0, 2)));
                let icmp = IcmpView::parse(view.payload()).unwrap();
                assert_eq!(((icmp.kind(), icmp.code()), icmp.checksum_ok()), (kind, true));
                let quote = &view.payload()[8..];
                assert_eq!(quote[12..], packet[12..quote.len()], "addresses and what follows");
            }
            // The packet is translated nevertheless, and an answer comes back.
            lab.receive(0, vec![framed(0, 2, &ping(n).build())]);
            let sent = lab.sent();
            assert_eq!(sound(1, 2, &sent[0].1).src(), outside);
        }
        // An error about what is not translated stays as it is.
        let own = udp(ip(0, 2), ip(2, 2), 32).ttl(1).build();
        lab.ok("flow add 7 table=1,priority=9,ip,nw_dst=10.0.2.2,actions=normal");
        lab.receive(0, vec![framed(0, 2, &own)]);
        let sent = lab.sent();
        let view = ipv4::check(&sent[0].1[14..]).unwrap();
        assert_eq!((view.dst(), view.payload()[20..28].to_vec()), (ip(0, 2), own[12..20].to_vec()));
        // The error stays as it is when no rule translates, too.
        lab.ok("flow del 7\nset interface flow test0 disable\nset interface flow test1 disable");
        lab.receive(0, vec![framed(0, 2, &own)]);
        assert_eq!(lab.sent().len(), 1);
        lab.close();
    }
}

#[test]
fn own_errors_of_ipv6_are_about_what_was_sent() {
    for workers in [1, 2] {
        let mut lab = setup().workers(workers).buffers(4096).ip6(2..=2).start();
        lab.ok("set interface mtu packet 1280 test1
             flow add 7 table=0,priority=2,ipv6,actions=ct(table=1,nat)
             flow add 7 table=0,priority=1,actions=normal
             flow add 7 table=1,ipv6,ct_state=+new,in_port=test0,actions=ct(commit,nat(src=2001:db8:0:1::77)),normal
             flow add 7 table=1,ipv6,ct_state=+est,actions=normal
             set interface flow test0 7
             set interface flow test1 7");
        lab.c.sync();
        lab.sent();
        let ping =
            |n: u16| Packet::new().ipv6(ip6::ip(0, 2), ip6::ip(1, 2)).icmp6_echo_request(n, 1);
        for n in 1..9 {
            for (packet, kind) in [(ping(n).payload_len(1372), 2), (ping(n).ttl(1), 3)] {
                let packet = packet.build();
                lab.receive(0, vec![ip6::framed(0, 2, &packet)]);
                let sent = lab.sent();
                let [(sw_if, error)] = &sent[..] else { panic!("{workers}: {sent:02x?}") };
                assert_eq!(*sw_if, lab.sw_if(0));
                let view = Ipv6View::parse(&error[14..]).unwrap();
                assert_eq!((view.src(), view.dst()), (ip6::ip(0, 1), ip6::ip(0, 2)));
                let icmp = Icmp6View::parse(view.payload()).unwrap();
                assert_eq!(
                    (icmp.kind(), icmp.checksum_ok(&ip6::ip(0, 1), &ip6::ip(0, 2))),
                    (kind, true)
                );
                let quote = &view.payload()[8..];
                assert_eq!(quote[8..], packet[8..quote.len()], "addresses and what follows");
            }
            lab.receive(0, vec![ip6::framed(0, 2, &ping(n).build())]);
            let sent = lab.sent();
            let view = Ipv6View::parse(&sent[0].1[14..]).unwrap();
            assert_eq!((view.src(), view.dst()), (ip6::ip(1, 0x77), ip6::ip(1, 2)));
        }
        lab.close();
    }
}

/// Packets that a rule sends by a sub-interface are counted for it and its port, copies too.
#[test]
fn outputs_by_sub_interfaces_are_counted_for_them() {
    let mut lab = router();
    let port = lab.sw_if(2);
    let matches = TagMatch::Outer { tag: VlanTag::dot1q(30), exact: true };
    let sub = interface::create_sub(&mut lab.c, port, 30, matches).unwrap();
    interface::set_admin(&mut lab.c, sub, true).unwrap();
    let frame = framed(0, 2, &udp(ip(0, 2), ip(1, 2), 32).build());
    let all = ["output:test2.30", "output:test2.30,normal", "normal,output:test2.30"];
    for (set, actions) in (10..).zip(all) {
        lab.ok(&format!("flow add {set} 'actions={actions}'\nset interface flow test0 {set}"));
        // The frame comes alone, and among others.
        for n in [1, 60] {
            let sent = |lab: &Lab| [port, sub].map(|i| lab.c.interface_totals(i).tx_packets);
            let before = sent(&lab);
            lab.receive(0, vec![frame.clone(); n]);
            let copies = lab.sent().iter().filter(|(sw_if, _)| *sw_if == port).count();
            assert_eq!(copies, n, "{actions}");
            assert_eq!(sent(&lab), before.map(|count| count + n as u64), "{actions}");
        }
    }
    interface::set_admin(&mut lab.c, sub, false).unwrap();
    lab.receive(0, vec![frame]);
    assert!(lab.sent().iter().all(|(sw_if, _)| *sw_if != port), "the sub-interface is down");
    lab.close();
}
