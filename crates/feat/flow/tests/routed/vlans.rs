//! Sub-interfaces with one tag and with two: what rules see behind the tags, and which tags frames
//! have that rules send.

use crate::subs::bare;
use crate::{router, setup};
use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_device::testing::{Lab, host_mac};
use thalweg_device::{SwIfIndex, TagMatch, VlanTag, interface};
use thalweg_wire::build::Packet;
use thalweg_wire::ipv4::Ipv4View;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// Adds `testN.7` with the tags 200 and 7.
fn pair(lab: &mut Lab, n: u8) -> SwIfIndex {
    let (outer, inner) = (VlanTag::dot1q(200), VlanTag::dot1q(7));
    let port = lab.sw_if(n);
    let matches = TagMatch::Pair { outer, inner, exact: true };
    let sub = interface::create_sub(&mut lab.c, port, 7, matches).unwrap();
    interface::set_admin(&mut lab.c, sub, true).unwrap();
    sub
}

/// A frame from the host behind `testN` to the one behind `testTO`, with tags, the outer one first.
fn tagged(n: u8, to: u8, tags: &[u16], packet: impl FnOnce(Packet) -> Packet) -> Vec<u8> {
    let ether = Packet::new().ether(host_mac(n, 2), host_mac(to, 2));
    let mut frame = packet(ether).build();
    for tci in tags.iter().rev() {
        let [a, b] = tci.to_be_bytes();
        frame.splice(12..12, [0x81, 0, a, b]);
    }
    frame
}

/// The control information of a frame's tags, and what is behind them.
fn read(frame: &[u8]) -> (Vec<u16>, &[u8]) {
    let (mut tags, mut rest) = (Vec::new(), &frame[12..]);
    while rest[..2] == [0x81, 0] {
        tags.push(u16::from_be_bytes([rest[2], rest[3]]));
        rest = &rest[4..];
    }
    (tags, rest)
}

fn datagram(packet: Packet) -> Packet {
    packet.ipv4(NEAR, FAR).udp(5000, 53).payload(b"abc")
}

/// Returns the frames sent for a frame that `testN` receives: by which port, and with which tags.
/// Bytes behind the tags are unchanged.
fn pass(lab: &mut Lab, n: u8, frame: &[u8]) -> Vec<(SwIfIndex, Vec<u16>)> {
    lab.receive(n, vec![frame.to_vec()]);
    let sent = lab.sent();
    assert!(sent.iter().all(|(_, out)| read(out).1 == read(frame).1), "{sent:02x?}");
    sent.iter().map(|(sw_if, out)| (*sw_if, read(out).0)).collect()
}

/// `test0.30` with one tag and `test1.7` with two in a bridge domain, whose frames have none.
fn bridged(workers: usize) -> Lab {
    let mut lab = setup().workers(workers).buffers(4096).start();
    bare(&mut lab, 0, 30);
    pair(&mut lab, 1);
    lab.ok("set interface l2 bridge test0.30 5
        set interface l2 tag-rewrite test0.30 pop 1
        set interface l2 bridge test1.7 5
        set interface l2 tag-rewrite test1.7 pop 2");
    lab
}

/// A filter on protocols holds for a sub-interface with two tags.
#[test]
fn rules_match_behind_two_tags() {
    let (near, far) = (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), "fd00::2".parse().unwrap());
    let v6 = |packet: Packet| packet.ipv6(near, far).udp(5000, 53).payload(b"abc");
    for n in [1, 60] {
        let mut lab = bridged(2);
        let count = |lab: &mut Lab, frame: Vec<u8>| {
            lab.receive(1, vec![frame; n]);
            lab.sent().len()
        };
        let v4 = |port: u16| {
            tagged(1, 0, &[200, 7], |p| p.ipv4(NEAR, FAR).udp(5000, port).payload(b"abc"))
        };
        let arp = || {
            let ask = Packet::arp_request(host_mac(1, 2), NEAR, FAR).build();
            [&ask[..12], &[0x81, 0, 0, 200, 0x81, 0, 0, 7], &ask[12..]].concat()
        };
        let v6 = || tagged(1, 0, &[200, 7], v6);
        for (rule, expected) in [
            ("ip", [0, 0, n, n]),
            ("udp,tp_dst=53,dl_vlan=200", [0, n, n, n]),
            ("ipv6,ipv6_src=fd00::1", [n, n, 0, n]),
            ("arp,arp_tpa=10.9.0.2", [n, n, n, 0]),
            ("ip,dl_vlan=7", [n, n, n, n]),
        ] {
            lab.ok(&format!("flow add 5 priority=9,{rule},actions=drop"));
            lab.ok("flow add 5 priority=0,actions=normal");
            let found = [v4(53), v4(54), v6(), arp()].map(|frame| count(&mut lab, frame));
            assert_eq!(found, expected, "{rule}");
            lab.ok("flow del 5");
        }
        lab.close();
    }
}

/// Frames that could carry IP behind more tags than rules see through do not pass them.
#[test]
fn frames_with_many_tags_do_not_pass_by_rules() {
    const MOST: usize = thalweg_wire::owner::MAX_DEPTH;
    for (workers, rule) in [(1, "actions=drop"), (2, "actions=ct(table=1)")] {
        let mut lab = setup().workers(workers).buffers(4096).start();
        lab.ok("set interface ip address del test0 all
            set interface ip address del test1 all
            set interface l2 bridge test0 6
            set interface l2 bridge test1 6
            flow add 6 priority=0,actions=normal");
        lab.ok(&format!("flow add 6 priority=9,ip,{rule}\nflow add 6 priority=9,ipv6,{rule}"));
        let deep =
            |lab: &Lab| lab.count("flow-rules", "flow: more VLAN tags than rules see through");
        let v6 = |packet: Packet| {
            let (near, far) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
            packet.ipv6(near, far).udp(5000, 53).payload(b"abc")
        };
        for tags in 0..=MOST + 1 {
            let tags = vec![7; tags];
            for frame in [tagged(0, 1, &tags, datagram), tagged(0, 1, &tags, v6)] {
                for n in [1, 60] {
                    let before = (deep(&lab), lab.dropped());
                    lab.receive(0, vec![frame.clone(); n]);
                    assert_eq!((lab.sent(), lab.dropped()), (vec![], before.1 + n as u64));
                    let by_depth = if tags.len() > MOST { n as u64 } else { 0 };
                    assert_eq!(deep(&lab), before.0 + by_depth, "{tags:?}");
                }
            }
            // Other frames with as many pass.
            let mut other = tagged(0, 1, &tags, datagram);
            other[12 + 4 * tags.len()..][..2].copy_from_slice(&[0x88, 0xb5]);
            lab.receive(0, vec![other]);
            assert_eq!(lab.sent().len(), usize::from(tags.len() <= MOST));
        }
        // Ports without rules carry them as they are.
        lab.ok("flow del 6");
        lab.receive(0, vec![tagged(0, 1, &[7; MOST + 1], datagram)]);
        assert_eq!(lab.sent().len(), 1);
        lab.close();
    }
}

/// Replies behind two tags are tracked, and translated back.
#[test]
fn connections_are_tracked_behind_two_tags() {
    let shared = Ipv4Addr::new(10, 9, 0, 99);
    for workers in [1, 2] {
        let mut lab = bridged(workers);
        lab.ok("flow add 5 table=0,ip,actions=ct(table=1,nat)
            flow add 5 table=1,ip,ct_state=+new,in_port=test0.30,actions=ct(commit,nat(src=10.9.0.99)),normal
            flow add 5 table=1,ip,ct_state=+est,actions=normal");
        for sport in 5000..5008 {
            let open = tagged(0, 1, &[30], |p| p.ipv4(NEAR, FAR).udp(sport, 53).payload(b"abc"));
            lab.receive(0, vec![open]);
            let sent = lab.sent();
            let [(_, frame)] = &sent[..] else { panic!("{sent:02x?}") };
            let (tags, rest) = read(frame);
            let view = Ipv4View::parse(&rest[2..]).unwrap();
            assert_eq!((tags, view.src()), (vec![200, 7], shared));
            let port = u16::from_be_bytes([view.payload()[0], view.payload()[1]]);
            let back = |to, port| tagged(1, 0, &[200, 7], |p| p.ipv4(FAR, to).udp(53, port));
            lab.receive(1, vec![back(shared, port)]);
            let sent = lab.sent();
            let [(_, frame)] = &sent[..] else { panic!("{sent:02x?}") };
            let expected = tagged(1, 0, &[30], |p| p.ipv4(FAR, NEAR).udp(53, sport));
            assert_eq!(frame, &expected);
            // A packet of no connection does not pass.
            lab.receive(1, vec![back(shared, 9)]);
            assert_eq!(lab.sent(), []);
        }
        lab.close();
    }
}

/// Frames that a rule sends by a sub-interface in layer 2 have the tags that `normal` gives them,
/// whatever the order of outputs.
#[test]
fn outputs_in_layer_2_have_the_tags_of_a_bridge() {
    let mut lab = bridged(1);
    let [left, right] = [0, 1].map(|n| lab.sw_if(n));
    let there = tagged(0, 1, &[30 | 5 << 13], datagram);
    let wanted = (right, vec![200 | 5 << 13, 7 | 5 << 13]);
    let raw = (lab.sw_if(2), vec![30 | 5 << 13]);
    for (actions, expected) in [
        ("normal", vec![wanted.clone()]),
        ("output:test1.7", vec![wanted.clone()]),
        ("pop_vlan,output:test1.7", vec![(right, vec![200, 7])]),
        ("in_port", vec![(left, vec![30 | 5 << 13])]),
        // A port sends frames as they are.
        ("output:test1.7,output:test2", vec![wanted.clone(), raw.clone()]),
        ("output:test2,output:test1.7", vec![wanted.clone(), raw]),
        ("output:test1.7,normal", vec![wanted.clone(), wanted]),
    ] {
        lab.ok(&format!("flow add 5 actions={actions}"));
        // The address of the host is learned.
        lab.receive(1, vec![tagged(1, 0, &[200, 7], datagram)]);
        lab.sent();
        let mut found = pass(&mut lab, 0, &there);
        found.sort();
        assert_eq!(found, expected, "{actions}");
    }
    // A sub-interface without a rewrite checks frames that it sends.
    lab.ok("flow add 5 actions=output:test1.7
        set interface l2 tag-rewrite test1.7 disable
        set interface l2 efp-filter test1.7");
    assert_eq!(pass(&mut lab, 0, &there), []);
    lab.ok("set interface l2 efp-filter test1.7 disable");
    assert_eq!(pass(&mut lab, 0, &there), [(right, vec![200 | 5 << 13, 7 | 5 << 13])]);
    lab.close();
}

/// Frames that a rule sends by a routed sub-interface have its tags in place of those of the one
/// that received them.
#[test]
fn outputs_by_routed_sub_interfaces_have_their_tags() {
    let mut lab = router();
    bare(&mut lab, 0, 10);
    bare(&mut lab, 2, 30);
    pair(&mut lab, 1);
    let [one, two] = [2, 1].map(|n| lab.sw_if(n));
    let (three, raw) = (3 << 13, lab.sw_if(2));
    lab.ok("set interface flow test0 7\nset interface flow test0.10 8");
    for (tags, actions, expected) in [
        (&[][..], "output:test2.30", vec![(one, vec![30])]),
        (&[], "output:test1.7", vec![(two, vec![200, 7])]),
        // Tags that rules push are payload, if they are not the same.
        (&[], "push_vlan:0x8100,mod_vlan_vid:5,output:test2.30", vec![(one, vec![30, 5])]),
        (&[], "push_vlan:0x8100,mod_vlan_vid:30,output:test2.30", vec![(one, vec![30])]),
        (&[], "output:test2.30,output:test1.7", vec![(one, vec![30]), (two, vec![200, 7])]),
        (&[10 | 3 << 13], "output:test2.30", vec![(one, vec![30 | three])]),
        (&[10], "output:test1.7,output:test2", vec![(two, vec![200, 7]), (raw, vec![10])]),
        (&[10], "pop_vlan,output:test2.30", vec![(one, vec![30])]),
        (&[10], "mod_vlan_vid:30,output:test2.30", vec![(one, vec![30])]),
        (&[10], "push_vlan:0x8100,mod_vlan_vid:5,output:test1.7", vec![(two, vec![200, 7, 5])]),
        (&[10], "in_port", vec![(lab.sw_if(0), vec![10])]),
    ] {
        let set = if tags.is_empty() { 7 } else { 8 };
        lab.ok("flow add 7 actions=normal");
        lab.ok(&format!("flow add {set} actions={actions}"));
        let mut found = pass(&mut lab, 0, &tagged(0, 1, tags, datagram));
        let mut expected = expected;
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{tags:?} {actions}");
    }
    lab.close();
}
