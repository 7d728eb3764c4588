//! Bridge domains that answer for hosts.

use super::*;
use std::net::Ipv6Addr;
use thalweg_wire::arp::Operation;
use thalweg_wire::ethernet::EthernetView;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv6::{Ipv6Repr, Ipv6View};
use thalweg_wire::nd;

/// `test0`, `test1.20` with a tag rewrite and `test2` are bridged.
fn lab_of_three() -> Lab {
    let mut lab = lab(1);
    sub(&mut lab, 1, 20, one(20));
    lab.ok("set interface l2 bridge test0 10\nset interface l2 bridge test1.20 10\n\
         set interface l2 bridge test2 10\nset interface l2 tag-rewrite test1.20 pop 1\n\
         set bridge-domain arp term 10");
    lab
}

fn arp(
    from: u8,
    tags: &[VlanTag],
    operation: Operation,
    sender: Ipv4Addr,
    target: Ipv4Addr,
) -> Vec<u8> {
    let repr = ArpRepr { operation, ..ArpRepr::request(host(from), sender, target) };
    let mut packet = vec![0; 28];
    repr.emit(&mut packet).expect("room");
    broadcast(frame(0, from, tags, [8, 6], &packet))
}

fn broadcast(mut frame: Vec<u8>) -> Vec<u8> {
    frame[..6].fill(0xff);
    frame
}

fn ask(from: u8, target: Ipv4Addr) -> Vec<u8> {
    arp(from, &[], Operation::Request, ip(1, from), target)
}

fn v6(host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host.into())
}

/// A solicitation, with or without padding behind it.
fn solicit(from: u8, src: Ipv6Addr, target: Ipv6Addr, padding: usize) -> Vec<u8> {
    let dst = nd::solicited_node(target);
    let mut packet = vec![0; 40 + 32];
    let ip = Ipv6Repr { hop_limit: 255, ..Ipv6Repr::new(src, dst, 58, 32) };
    ip.emit(&mut packet).expect("room");
    nd::emit_solicitation(&src, &dst, target, host(from), &mut packet[40..]).expect("room");
    packet.resize(packet.len() + padding, 0);
    let mut frame = frame(0, from, &[], [0x86, 0xdd], &packet);
    frame[..6].copy_from_slice(&MacAddr::from_ipv6_multicast(dst).0);
    frame
}

/// Ports that were sent a frame.
fn ports(lab: &mut Lab) -> Vec<SwIfIndex> {
    let mut ports: Vec<_> = lab.sent().into_iter().map(|(sw_if, _)| sw_if).collect();
    ports.sort_unstable();
    ports
}

#[test]
fn known_hosts_are_answered_for_on_the_port_that_asks() {
    let mut lab = lab_of_three();
    let flooded = vec![lab.sw_if(1), lab.sw_if(2)];
    lab.receive(0, vec![ask(5, ip(1, 9))]);
    assert_eq!(ports(&mut lab), flooded, "not known yet");
    lab.ok("set bridge-domain arp entry 10 10.1.0.9 02:00:00:99:00:09");
    lab.receive(0, vec![ask(5, ip(1, 9))]);
    let (sw_if, sent) = sent_one(&mut lab);
    let (dst, src, _, kind, packet) = parts(&sent);
    assert_eq!((sw_if, dst, src, kind), (lab.sw_if(0), host(5).0, host(9).0, [8, 6]));
    let reply = ArpView::parse(packet).expect("ARP").repr();
    let expected = ArpRepr {
        operation: Operation::Reply,
        sender_mac: host(9),
        sender_ip: ip(1, 9),
        target_mac: host(5),
        target_ip: ip(1, 5),
    };
    assert_eq!(reply, expected);
    // Requests come by a port that rewrites tags, with the tag.
    lab.receive(1, vec![arp(6, &[dot1q(20)], Operation::Request, ip(1, 6), ip(1, 9))]);
    let (sw_if, sent) = sent_one(&mut lab);
    let (dst, src, tags, ..) = parts(&sent);
    assert_eq!((sw_if, dst, src, tags), (lab.sw_if(1), host(6).0, host(9).0, vec![dot1q(20)]));
    assert_eq!(lab.count("arp-term-l2bd", "ARP and ND replies sent"), 2);
    // Announcements, answers, and what is no ARP go on.
    for frame in [
        ask(5, ip(1, 5)),
        arp(5, &[], Operation::Reply, ip(1, 5), ip(1, 9)),
        broadcast(frame(0, 5, &[], [8, 6], &[0; 28])),
    ] {
        lab.receive(0, vec![frame]);
        assert_eq!(ports(&mut lab), flooded);
    }
    // One who says to be another one is not believed.
    let mut wrong = ask(5, ip(1, 77));
    wrong[11] ^= 1;
    lab.receive(0, vec![wrong]);
    assert!(lab.sent().is_empty());
    let mismatch = "ARP hw addr does not match L2 frame src addr";
    assert_eq!(lab.count("arp-term-l2bd", mismatch), 1);
    // Short frames of each length, whatever they are.
    for len in 12..60 {
        let mut frame = ask(5, ip(1, 9));
        frame.resize(60, 0);
        frame.truncate(len);
        lab.receive(0, vec![frame]);
        lab.sent();
    }
    lab.ok("set bridge-domain arp entry 10 10.1.0.9 02:00:00:99:00:09 del");
    lab.receive(0, vec![ask(5, ip(1, 9))]);
    assert_eq!(ports(&mut lab), flooded);
    // Ports of a group lead to bridges that answer for themselves.
    lab.ok("set bridge-domain arp entry 10 10.1.0.9 02:00:00:99:00:09\n\
         set interface l2 bridge test0 10 1");
    lab.receive(0, vec![ask(5, ip(1, 9))]);
    assert_eq!(ports(&mut lab), flooded);
    lab.ok("set interface l2 bridge test0 10\nset bridge-domain flood 10 disable");
    lab.receive(0, vec![ask(5, ip(1, 9)), ask(5, ip(1, 77))]);
    assert_eq!(ports(&mut lab), [lab.sw_if(0)]);
    assert_eq!(lab.count("arp-term-l2bd", "flooding disabled"), 1);
    lab.close();
}

#[test]
fn neighbours_are_advertised() {
    let mut lab = lab_of_three();
    lab.ok("set bridge-domain arp entry 10 2001:db8::9 02:00:00:99:00:09");
    for padding in [0, 7] {
        lab.receive(0, vec![solicit(5, v6(5), v6(9), padding)]);
        let (sw_if, frame) = sent_one(&mut lab);
        assert_eq!((sw_if, frame.len()), (lab.sw_if(0), 86));
        let ether = EthernetView::parse(&frame).expect("Ethernet");
        assert_eq!((ether.dst(), ether.src()), (host(5), host(9)));
        let ip = Ipv6View::parse(ether.payload()).expect("IPv6");
        assert_eq!((ip.src(), ip.dst(), ip.hop_limit()), (v6(9), v6(5), 255));
        let icmp = Icmp6View::parse(ip.payload()).expect("ICMPv6");
        assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
        let message = nd::Message::parse(&icmp).expect("ND").expect("whole");
        assert_eq!(message.link_layer(), Some(host(9)));
        let nd::Message::NeighborAdvertisement { flags, target, .. } = message else {
            panic!("{message:?}")
        };
        assert_eq!((flags, target), (nd::flag::SOLICITED | nd::flag::OVERRIDE, v6(9)));
    }
    // Others, duplicate detection, and broken ones are flooded.
    let mut broken = solicit(5, v6(5), v6(9), 0);
    broken[60] ^= 1;
    let mut far = solicit(5, v6(5), v6(9), 0);
    far[14 + 7] = 254;
    for frame in [
        solicit(5, v6(5), v6(8), 0),
        solicit(5, Ipv6Addr::UNSPECIFIED, v6(9), 0),
        broken,
        far,
        solicit(5, v6(5), v6(9), 0)[..80].to_vec(),
    ] {
        lab.receive(0, vec![frame]);
        assert_eq!(ports(&mut lab), [lab.sw_if(1), lab.sw_if(2)]);
    }
    lab.close();
}

#[test]
fn unknown_ones_may_go_to_one_port() {
    let mut lab = lab_of_three();
    lab.ok("set interface l2 bridge test2 10 uu-fwd\nset bridge-domain arp-ufwd 10\n\
         set bridge-domain arp entry 10 10.1.0.9 02:00:00:99:00:09");
    lab.receive(0, vec![ask(5, ip(1, 9))]);
    assert_eq!(ports(&mut lab), [lab.sw_if(0)]);
    lab.receive(0, vec![ask(5, ip(1, 8))]);
    assert_eq!(ports(&mut lab), [lab.sw_if(2)]);
    // Other broadcasts do not go there.
    lab.receive(0, vec![broadcast(frame(0, 5, &[], [8, 0], &[0; 50]))]);
    assert_eq!(ports(&mut lab), [lab.sw_if(1)]);
    lab.ok("set bridge-domain arp term 10 disable");
    lab.receive(0, vec![ask(5, ip(1, 9))]);
    assert_eq!(ports(&mut lab), [lab.sw_if(2)], "without termination, too");
    lab.close();
}

#[test]
fn entries_are_listed_and_go_with_their_bridge_domain() {
    let mut lab = lab_of_three();
    let entry = "set bridge-domain arp entry 10";
    lab.ok(&format!(
        "{entry} 10.1.0.9 02:00:00:99:00:09\n{entry} 10.1.0.9 02:00:00:99:00:0a\n\
         {entry} 2001:db8::9 02:00:00:99:00:09"
    ));
    let text = lab.cli("show bridge-domain 10 detail");
    for line in [
        "l2-input l2-learn l2-fwd arp-term-l2bd l2-flood",
        "  IP4/IP6 to MAC table for ARP Termination",
        "                10.1.0.9                 =>  02:00:00:99:00:0a",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    for (line, said) in [
        (&*format!("{entry} 10.1.0.9 02:00:00:99:00:09 del"), "does not answer for 10.1.0.9"),
        (&format!("{entry} 224.0.0.9 02:00:00:99:00:09"), "the address of a host expected"),
        (&format!("{entry} 10.0.0.9 ff:ff:ff:ff:ff:ff"), "a unicast MAC address expected"),
        (
            "set bridge-domain arp entry 11 10.0.0.9 02:00:00:99:00:09",
            "there is no bridge domain 11",
        ),
    ] {
        let text = lab.cli(line);
        assert!(text.contains(said), "{line}: {text}");
    }
    let json = lab.cli("show bridge-domain 10 | json");
    assert!(json.contains("\"arp_termination\":true") && json.contains("2001:db8::9"), "{json}");
    lab.ok("set interface l3 test0\nset interface l3 test1.20\nset interface l3 test2\n\
         create bridge-domain 10 del");
    lab.cli("create bridge-domain 10 arp-term 1");
    lab.ok("\
         set interface l2 bridge test0 10\nset interface l2 bridge test1 10");
    lab.receive(0, vec![ask(5, ip(1, 9))]);
    assert_eq!(ports(&mut lab), [lab.sw_if(1)]);
    lab.ok(&format!("{entry} 10.1.0.9 02:00:00:99:00:09\n{entry} del-all"));
    lab.receive(0, vec![ask(5, ip(1, 9))]);
    assert_eq!(ports(&mut lab), [lab.sw_if(1)]);
    lab.close();
}
