//! ICMP errors about labelled packets: along the path where customers' packets are in several
//! labels, whatever routes of the core say of their senders (RFC 3032 section 2.3.2).

use crate::lab::{FAR, Left, Mpls, framed, left, router_with_ip6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thalweg_device::testing::ip4::ip;
use thalweg_device::testing::ip6::ip as ip6;
use thalweg_device::testing::{Lab, host_mac};
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv4::IcmpView;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::ipv6::Ipv6View;

/// A customer's address: for the core, one by its default route.
const CUSTOMER: Ipv4Addr = Ipv4Addr::new(172, 16, 5, 5);
const CUSTOMER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 5, 0, 0, 0, 0, 0, 5);
const FAR6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1);

/// A router of the core, whose default routes lead elsewhere than its labels.
fn core() -> Lab {
    let mut lab = router_with_ip6();
    lab.ok("ip route add 0.0.0.0/0 via 10.0.2.2 test2\n\
            ip route add ::/0 via 2001:db8:0:2::2 test2\n\
            mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17\n\
            mpls local-label add 16 non-eos via 10.0.1.2 test1 out-labels 17\n\
            mpls local-label add 21 non-eos via 10.0.1.2 test1 out-labels implicit-null");
    lab
}

/// A customer's packet behind labels of this TTL each, the outermost first.
fn behind(v6: bool, labels: &[(u32, u8)], len: usize) -> Packet {
    let stack = labels.iter().fold(Packet::new(), |p, (label, ttl)| p.mpls(*label).ttl(*ttl));
    let packet = match v6 {
        true => stack.ipv6(CUSTOMER6, FAR6),
        false => stack.ipv4(CUSTOMER, FAR).dont_fragment(),
    };
    packet.ttl(33).udp(1, 2).payload_len(len)
}

/// Source, destination, type and code of an error.
fn read(packet: &[u8]) -> (IpAddr, IpAddr, (u8, u8)) {
    if packet[0] >> 4 == 4 {
        let view = Ipv4View::parse(packet).expect("a packet");
        let icmp = IcmpView::parse(view.payload()).expect("ICMP");
        return (view.src().into(), view.dst().into(), (icmp.kind(), icmp.code()));
    }
    let view = Ipv6View::parse(packet).expect("a packet");
    let icmp = Icmp6View::parse(view.payload()).expect("ICMPv6");
    (view.src().into(), view.dst().into(), (icmp.kind(), icmp.code()))
}

/// The error about a packet that came by `test0`.
fn answer(lab: &mut Lab, packet: &Packet) -> Left {
    let sent = lab.forward(0, packet, 1);
    assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
    left(&sent[0])
}

#[test]
fn a_ttl_that_ends_before_several_labels_is_answered_along_them() {
    let mut lab = core();
    for v6 in [false, true] {
        let (to, kind): (IpAddr, _) = match v6 {
            true => (CUSTOMER6.into(), (3, 0)),
            false => (CUSTOMER.into(), (11, 0)),
        };
        for (labels, want) in [
            (&[(16, 1), (44, 7)][..], &[(17, 0, false, 254), (44, 0, true, 255)][..]),
            (&[(21, 1), (44, 7)], &[(44, 0, true, 255)]),
            // The first label was there, though the case does not show it.
            (&[(0, 9), (16, 1)], &[(17, 0, true, 254)]),
        ] {
            let answer = answer(&mut lab, &behind(v6, labels, 100));
            assert_eq!((answer.by, answer.to), (1, host_mac(1, 2)), "{labels:?}");
            assert_eq!(answer.labels, want);
            assert_eq!((read(&answer.rest).1, read(&answer.rest).2), (to, kind));
        }
        // A packet behind one label is of the core, whose sender a route knows.
        let answer = answer(&mut lab, &behind(v6, &[(16, 1)], 100));
        assert_eq!((answer.by, answer.labels.len()), (2, 0));
        assert_eq!(read(&answer.rest).1, to);
    }
    lab.close();
}

#[test]
fn what_is_too_long_behind_several_labels_is_answered_along_them() {
    let mut lab = core();
    // Outgoing labels mean something else here.
    lab.ok("mpls local-label add 17 eos via 10.0.2.3 test2 out-labels 99\n\
            mpls local-label add 17 non-eos via 10.0.2.3 test2 out-labels 99\n\
            set interface mtu mpls 1400 test1");
    for v6 in [false, true] {
        let (to, kind): (IpAddr, _) = match v6 {
            true => (CUSTOMER6.into(), (2, 0)),
            false => (CUSTOMER.into(), (3, 4)),
        };
        for (labels, want) in [
            (&[(16, 9), (44, 7)][..], &[(17, 0, false, 255), (44, 0, true, 255)][..]),
            (&[(21, 9), (44, 7)], &[(44, 0, true, 255)]),
            (&[(0, 9), (16, 9)], &[(17, 0, true, 255)]),
        ] {
            let answer = answer(&mut lab, &behind(v6, labels, 1450));
            assert_eq!((answer.by, answer.to), (1, host_mac(1, 2)), "{labels:?}");
            assert_eq!(answer.labels, want);
            assert_eq!((read(&answer.rest).1, read(&answer.rest).2), (to, kind));
        }
        let one = answer(&mut lab, &behind(v6, &[(16, 9)], 1450));
        assert_eq!((one.by, one.labels.len()), (2, 0));
        // Without a route back, the error goes on by the label of the way out.
        lab.ok(&format!("ip route del {}/0", if v6 { "::" } else { "0.0.0.0" }));
        let one = answer(&mut lab, &behind(v6, &[(16, 9)], 1450));
        assert_eq!((one.by, &one.labels[..]), (1, &[(17, 0, true, 255)][..]));
    }
    lab.close();
}

/// RFC 1812 section 4.3.2.7: errors go to hosts, whatever label is in front of a packet.
#[test]
fn nothing_is_answered_to_a_broadcast_address() {
    let mut lab = core();
    lab.ok("set interface ip directed-broadcast test1 enable\n\
            mpls local-label add 18 eos via 10.0.1.2 test1\n\
            set interface mtu packet 1400 test1\nset interface mtu mpls 1400 test1");
    let packet = |src, dst, label, ttl, len| {
        let labelled = Packet::new().mpls(label).ttl(ttl).ipv4(src, dst).dont_fragment();
        labelled.ttl(33).udp(1, 2).payload_len(len)
    };
    let (host, all) = (ip(1, 3), ip(1, 255));
    for label in [16, 18] {
        for (ttl, len) in [(1, 100), (9, 1450)] {
            for (src, dst) in [(all, FAR), (host, all), (Ipv4Addr::BROADCAST, FAR)] {
                let sent = lab.forward(0, &packet(src, dst, label, ttl, len), 1);
                assert_eq!(sent, [], "{label} {ttl} {src} {dst}");
            }
            let answer = answer(&mut lab, &packet(host, FAR, label, ttl, len));
            assert_eq!((answer.by, answer.to), (1, host_mac(1, 3)), "{label} {ttl}");
            assert_eq!(read(&answer.rest).1, IpAddr::V4(host));
        }
    }
    // Behind several labels, the address is a customer's, and may be that of a host.
    let two = Packet::new().mpls(16).ttl(1).mpls(44).ttl(7).ipv4(all, FAR).udp(1, 2);
    let sent = lab.forward(0, &two, 1);
    assert_eq!(sent.len(), 1, "{}", lab.cli("show errors"));
    assert_eq!(left(&sent[0]).labels, [(17, 0, false, 254), (44, 0, true, 255)]);
    lab.close();
}

/// A label that leads to a customer's link: the customer's packets are answered there, by the
/// customer's table.
#[test]
fn what_a_last_label_sends_to_a_customer_is_answered_by_his_table() {
    let mut lab = core();
    let (host4, host6) = (ip(2, 2), ip6(2, 2));
    lab.ok("set interface ip address del test2 all\n\
            ip route del 0.0.0.0/0\nip route del ::/0\n\
            ip route add 0.0.0.0/0 via 10.0.1.2 test1\n\
            ip route add ::/0 via 2001:db8:0:1::2 test1\n\
            ip table add 10\nip6 table add 10\n\
            set interface ip table test2 10\nset interface ip6 table test2 10\n\
            set interface ip address test2 10.0.2.1/24\n\
            set interface ip address test2 2001:db8:0:2::1/64");
    lab.neighbor(2, host4, host_mac(2, 2));
    lab.neighbor(2, host6, host_mac(2, 2));
    lab.ok("ip route add 172.16.0.0/16 table 10 via 10.0.2.2 test2\n\
            ip route add fd00:5::/32 table 10 via 2001:db8:0:2::2 test2\n\
            ip route add 16.0.0.0/24 table 10 via 10.0.2.2 test2\n\
            mpls local-label add 18 eos via 10.0.2.2 test2\n\
            mpls local-label add 19 eos via 2001:db8:0:2::2 test2\n\
            mpls local-label add 51 16.0.0.0/24 table 10\n\
            set interface mtu packet 1400 test2");
    lab.sent();
    for (label, v6) in [(18, false), (51, false), (19, true)] {
        let (to, from): (IpAddr, IpAddr) = match v6 {
            true => (CUSTOMER6.into(), ip6(2, 1).into()),
            false => (CUSTOMER.into(), ip(2, 1).into()),
        };
        let expired = if v6 { (3, 0) } else { (11, 0) };
        let long = if v6 { (2, 0) } else { (3, 4) };
        let mut dying = behind(v6, &[(label, 9)], 100);
        dying = dying.ttl(1);
        for (what, packet, kind) in [
            ("label", behind(v6, &[(label, 1)], 100), expired),
            ("packet", dying, expired),
            ("length", behind(v6, &[(label, 9)], 1450), long),
        ] {
            // A frame of several goes by the kernels.
            for n in [1, 5] {
                let sent = lab.forward(0, &packet, n);
                assert_eq!(sent.len(), n, "{label} {what} {}", lab.cli("show errors"));
                for frame in &sent {
                    let answer = left(frame);
                    assert_eq!((answer.by, answer.labels.len()), (2, 0), "{label} {what}");
                    assert_eq!(read(&answer.rest), (from, to, kind), "{label} {what}");
                }
            }
        }
    }
    lab.close();
}

/// Hosts at other interfaces get their answers during a flood.
#[test]
fn a_flood_at_one_interface_leaves_answers_for_others() {
    let mut lab = core();
    for v6 in [false, true] {
        let expired = behind(v6, &[(16, 1)], 100);
        let frame = |i| if i < 248 { (0, framed(0, &expired)) } else { (2, framed(2, &expired)) };
        lab.deliver_mixed(0, (0..256).map(frame).collect());
        lab.settle();
        // Answers about packets of `test2` have its address.
        let sent = lab.sent();
        let from = |frame: &[u8]| read(&frame[14..]).0;
        let of_test2 = if v6 { IpAddr::V6(ip6(2, 1)) } else { IpAddr::V4(ip(2, 1)) };
        assert_eq!(sent.iter().filter(|(_, frame)| from(frame) == of_test2).count(), 8);
        assert!(sent.len() < 256);
    }
    lab.close();
}

/// No label says what is behind it: a frame of a pseudowire without control word begins with a MAC
/// address (RFC 4928), and a damaged header names no sender.
#[test]
fn what_only_looks_like_ip_is_neither_answered_nor_cut() {
    let mut lab = core();
    lab.ok("set interface mtu mpls 1400 test1");
    let frame = |first: u8| {
        let to = MacAddr([first, 0, 5, 0x78, 0, 9]);
        let frame = Packet::new().ether(host_mac(0, 2), to).ipv4(CUSTOMER, FAR).udp(1, 2);
        frame.payload_len(1450 - 14 - 28).build()
    };
    let mut damaged = behind(false, &[], 1422).build();
    damaged[10] ^= 1;
    let mut cut_off = behind(true, &[], 1402).build();
    cut_off[5] ^= 8;
    for (at, bytes) in [frame(0x45), frame(0x60), damaged, cut_off].into_iter().enumerate() {
        for ttl in [1, 9] {
            let packet = Packet::new().mpls(16).ttl(ttl).payload(&bytes);
            let sent = lab.forward(0, &packet, 1);
            assert!(sent.is_empty(), "{at}, TTL {ttl}: {sent:02x?}");
        }
    }
    assert_eq!(
        lab.count("mpls-icmp-error", "icmp errors not sent: not allowed for this packet"),
        4
    );
    assert_eq!(lab.count("mpls-frag", "mpls MTU exceeded and no ip packet behind the labels"), 4);
    lab.close();
}
