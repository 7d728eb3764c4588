//! Packets through pairs whose router's ends are interfaces of the test.

use crate::make::join;
use crate::pairs::{Made, Pairs};
use crate::{FEATURE, delete, gate, table};
use std::net::Ipv6Addr;
use thalweg_buffer::SwIfIndex;
use thalweg_device::testing::{Lab, framed, host_mac, ip4, ip6, our_mac};
use thalweg_device::{MacAddr, interface};
use thalweg_wire::build::Packet;
use thalweg_wire::ethernet::ethertype;
use thalweg_wire::icmpv6::kind;
use thalweg_wire::nd::solicited_node;

/// Interface 0 with the twin 2; a neighbour of 0 and of 1.
fn lab(workers: usize) -> Lab {
    let setup = Lab::of(&FEATURE).with(&thalweg_feat_mss_clamp::FEATURE);
    let mut lab = setup.workers(workers).interfaces(4).ip4(2..=2).ip6(2..=2).start();
    pair(&mut lab, "test0", "test2");
    lab
}

/// Makes a pair of two interfaces.
fn pair(lab: &mut Lab, phy: &str, host: &str) {
    pair_by(lab, phy, host, Made::Tap);
}

fn pair_by(lab: &mut Lab, phy: &str, host: &str, made: Made) {
    let find = |name| interface::find(&lab.c, name).unwrap();
    let (phy, host) = (interface::view(&lab.c, find(phy)).unwrap(), find(host));
    let number = lab.c.state::<Pairs>().borrow().next().unwrap();
    join(&mut lab.c, &phy, (number, host, "twin".into()), made, None).unwrap();
    lab.settle();
}

/// An IPv4 packet of a protocol from the neighbour of interface 0.
fn packet(to: std::net::Ipv4Addr, ttl: u8, protocol: u8) -> Vec<u8> {
    Packet::new().ipv4(ip4::ip(0, 2), to).ttl(ttl).protocol(protocol).payload(&[7; 30]).build()
}

fn passes(lab: &mut Lab, from: u8, to: u8, frame: Vec<u8>) {
    let sent = lab.exchange(from, vec![frame.clone()]);
    assert_eq!(sent, [(to, frame)], "{}", lab.cli("show errors"));
}

#[test]
fn packets_arrive_as_they_came() {
    for workers in [1, 2] {
        let mut lab = lab(workers);
        let us = ip4::ip(0, 1);
        for (ttl, protocol) in [(1, 89), (255, 112), (1, 6), (0, 6), (255, 50)] {
            passes(&mut lab, 0, 2, ip4::framed(0, 2, &packet(us, ttl, protocol)));
        }
        let group = MacAddr([1, 0, 0x5e, 0, 0, 5]);
        let ospf = packet([224, 0, 0, 5].into(), 1, 89);
        passes(&mut lab, 0, 2, framed(group, host_mac(0, 2), ethertype::IPV4, &ospf));
        // Interfaces without a twin refuse such packets.
        lab.receive(1, vec![framed(group, host_mac(1, 2), ethertype::IPV4, &ospf)]);
        assert!(lab.sent().is_empty());
        let bgp = Packet::new().ipv6(ip6::ip(0, 2), ip6::ip(0, 1)).tcp(40_000, 179).build();
        passes(&mut lab, 0, 2, ip6::framed(0, 2, &bgp));
        // Transit is forwarded.
        lab.receive(0, vec![ip4::framed(0, 2, &packet(ip4::ip(1, 2), 9, 6))]);
        assert_eq!(lab.sent().len(), 1);
        lab.close();
    }
}

#[test]
fn packets_leave_as_they_were_written() {
    for workers in [1, 2] {
        let mut lab = lab(workers);
        for (to, mac) in [
            (ip4::ip(0, 2), host_mac(0, 2)),
            (ip4::ip(1, 2), MacAddr([2, 0, 0, 0, 9, 9])),
            ([224, 0, 0, 5].into(), MacAddr([1, 0, 0x5e, 0, 0, 5])),
        ] {
            let frame = framed(mac, our_mac(0), ethertype::IPV4, &packet(to, 1, 89));
            passes(&mut lab, 2, 0, frame);
        }
        let echo = Packet::new().ipv6(ip6::ip(0, 1), ip6::ip(0, 2)).udp(1, 2).build();
        passes(&mut lab, 2, 0, ip6::framed_to(host_mac(0, 2), our_mac(0), &echo));
        // Features for output see them.
        lab.ok("set interface tcp-mss-clamp test0 ip4 tx ip4-mss 500 ip6 disable");
        let syn = Packet::new()
            .ipv4(ip4::ip(0, 1), ip4::ip(0, 2))
            .tcp(1, 2)
            .flags(2)
            .tcp_options(&[2, 4, 5, 0xb4])
            .build();
        lab.receive(2, vec![framed(host_mac(0, 2), our_mac(0), ethertype::IPV4, &syn)]);
        let sent = lab.sent_one(0);
        let header = framed(host_mac(0, 2), our_mac(0), ethertype::IPV4, &[]);
        assert_eq!((&sent[..14], &sent[54..58]), (&header[..14], &[2, 4, 1, 0xf4][..]));
        lab.close();
    }
}

#[test]
fn fragments_have_the_header_that_the_kernel_wrote() {
    let mut lab = lab(1);
    let long = |to| {
        let packet = Packet::new().ipv4(ip4::ip(0, 1), to).protocol(89).payload(&[7; 900]);
        framed(host_mac(0, 9), our_mac(0), ethertype::IPV4, &packet.build())
    };
    let header = framed(host_mac(0, 9), our_mac(0), ethertype::IPV4, &[]);
    // Longer than the interface takes, and than the way of the packet.
    lab.ok("set interface mtu packet 600 test0");
    lab.receive(2, vec![long(ip4::ip(0, 9))]);
    let mut sent = lab.sent();
    lab.ok("set interface mtu packet 1500 test0\nset ip pmtu 10.77.0.1 600");
    lab.settle();
    lab.receive(2, vec![long([10, 77, 0, 1].into())]);
    sent.extend(lab.sent());
    assert_eq!(sent.len(), 4, "{}", lab.cli("show errors"));
    for (port, frame) in sent {
        assert_eq!((port, &frame[..14]), (lab.sw_if(0), &header[..14]));
    }
    lab.close();
}

#[test]
fn arp_goes_both_ways_and_one_answers() {
    let mut lab = lab(1);
    let ask = Packet::arp_request(host_mac(0, 2), ip4::ip(0, 2), ip4::ip(0, 1)).build();
    let sent = lab.exchange(0, vec![ask]);
    assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), [0], "the router answers alone");
    let reply = Packet::arp_request(our_mac(0), ip4::ip(0, 1), ip4::ip(0, 2)).build();
    passes(&mut lab, 2, 0, reply.clone());
    let news = Packet::arp_request(host_mac(0, 2), ip4::ip(0, 2), ip4::ip(0, 2)).build();
    passes(&mut lab, 0, 2, news);
    assert_eq!(lab.count("linux-cp-arp-phy", "ARP replies copied to host"), 1);
    assert_eq!(lab.count("linux-cp-arp-host", "ARP packets processed"), 1);
    lab.close();
}

#[test]
fn advertisements_are_for_both() {
    let mut lab = lab(1);
    let head = [kind::NEIGHBOR_ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0];
    let message = [&head[..], &ip6::ip(0, 2).octets()].concat();
    let advertisement = ip6::icmp_packet((ip6::ip(0, 2), ip6::ip(0, 1)), 255, &[], &message);
    passes(&mut lab, 0, 2, ip6::framed(0, 2, &advertisement));
    assert_eq!(lab.count("linux-cp-nd-phy", "ND packets copied to host"), 1);
    lab.close();
}

/// A virtual router's address, or one of DHCPv6, is the twin's alone: so are the questions for it.
#[test]
fn an_ipv6_address_of_the_twin_alone_is_asked_and_reached_there() {
    for workers in [1, 2] {
        let mut lab = lab(workers);
        let ask = |target: Ipv6Addr, to: Ipv6Addr| {
            let head = [kind::NEIGHBOR_SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
            let mac = host_mac(0, 2).0;
            let message = [&head[..], &target.octets(), &[1, 1], &mac].concat();
            ip6::icmp_packet((ip6::ip(0, 2), to), 255, &[], &message)
        };
        let echo = |to| ip6::icmp_packet((ip6::ip(0, 2), to), 64, &[], &[128, 0, 0, 0, 0, 9, 0, 1]);
        // The router has joined the group, as its own address is of it, too.
        let (alone, local) = (ip6::at("2001:db8:0:0:9::1"), ip6::at("fe80::100"));
        let from = host_mac(0, 2);
        lab.receive(0, vec![ip6::to_group(from, &ask(alone, solicited_node(alone)))]);
        assert!(lab.sent().is_empty());
        let phy = SwIfIndex(1);
        table::update(&lab.c, |table| {
            table.set_of_host6(phy, vec![alone.to_bits(), local.to_bits()])
        });
        lab.c.enable_feature("ip6-unicast", "linux-cp-host-ip6", phy, true).unwrap();
        lab.settle();
        for ip in [alone, local] {
            passes(&mut lab, 0, 2, ip6::to_group(from, &ask(ip, solicited_node(ip))));
            passes(&mut lab, 0, 2, ip6::framed(0, 2, &ask(ip, ip)));
            passes(&mut lab, 0, 2, ip6::framed(0, 2, &echo(ip)));
        }
        // The router answers for its own.
        let own = ip6::ip(0, 1);
        for frame in [
            ip6::to_group(from, &ask(own, solicited_node(own))),
            ip6::framed(0, 2, &ask(own, own)),
            ip6::framed(0, 2, &echo(own)),
        ] {
            let sent = lab.exchange(0, vec![frame]);
            let ports: Vec<u8> = sent.iter().map(|sent| sent.0).collect();
            assert_eq!(ports, [0], "{}", lab.cli("show errors"));
        }
        lab.close();
    }
}

/// The twin of an interface without Ethernet frames is a TUN device: packets alone pass.
#[test]
fn packets_of_tunnels_have_no_header() {
    for workers in [1, 2] {
        let mut lab = lab(workers);
        lab.tunnel(4);
        lab.tunnel(5);
        lab.ok("set interface ip address test4 10.4.0.1/30");
        pair_by(&mut lab, "test4", "test5", Made::Tun);
        let us = [10, 4, 0, 1].into();
        for (to, ttl, protocol) in [(us, 1, 89), (us, 255, 112), (us, 64, 6)] {
            passes(&mut lab, 4, 5, packet(to, ttl, protocol));
        }
        passes(&mut lab, 4, 5, packet([224, 0, 0, 5].into(), 1, 89));
        for to in [[10, 4, 0, 2], [10, 0, 0, 2], [224, 0, 0, 5]] {
            passes(&mut lab, 5, 4, packet(to.into(), 1, 89));
        }
        // The router answers pings, and transit is forwarded.
        let ping = Packet::new().ipv4([10, 4, 0, 2].into(), us).icmp_echo_request(1, 1).build();
        let sent = lab.exchange(4, vec![ping]);
        assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), [4]);
        let sent = lab.exchange(4, vec![packet(ip4::ip(1, 2), 9, 6)]);
        assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), [1]);
        lab.close();
    }
}

#[test]
fn sub_interfaces_have_their_tags() {
    let mut lab = lab(1);
    for port in ["test0", "test2"] {
        lab.cli(&format!("create sub-interfaces {port} 7"));
        lab.cli(&format!("create sub-interfaces {port} 8 dot1ad 8 inner-dot1q 9 exact-match"));
    }
    lab.ok("set interface state test0.7 up\nset interface state test0.8 up");
    lab.ok("set interface ip address test0.7 10.7.0.1/24");
    lab.ok("set interface ip address test0.8 10.8.0.1/24");
    for id in ["7", "8"] {
        pair(&mut lab, &format!("test0.{id}"), &format!("test2.{id}"));
    }
    let tagged = |tags: &[u8], to: MacAddr, from: MacAddr, packet: &[u8]| {
        [&to.0[..], &from.0, tags, &[8, 0], packet].concat()
    };
    let one: &[u8] = &[0x81, 0, 0xa0, 7];
    let two: &[u8] = &[0x88, 0xa8, 0, 8, 0x81, 0, 0, 9];
    for (tags, net) in [(one, 7), (two, 8)] {
        let ospf = packet([10, net, 0, 1].into(), 1, 89);
        passes(&mut lab, 0, 2, tagged(tags, our_mac(0), host_mac(0, 2), &ospf));
        passes(&mut lab, 2, 0, tagged(tags, host_mac(0, 2), our_mac(0), &ospf));
    }
    lab.close();
}

/// A lab whose bridge domain 10 has a BVI with the twin `test2`.
fn lab_with_bvi() -> (Lab, MacAddr) {
    let mut lab = Lab::of(&FEATURE).with(&thalweg_feat_l2::FEATURE).interfaces(3).start();
    lab.cli("bvi create instance 7");
    lab.ok("set interface l2 bridge bvi7 10 bvi");
    lab.ok("set interface ip address bvi7 10.7.0.1/24\nset interface state bvi7 up");
    pair(&mut lab, "bvi7", "test2");
    let bvi = interface::find(&lab.c, "bvi7").unwrap();
    let mac = interface::view(&lab.c, bvi).unwrap().mac;
    (lab, mac)
}

#[test]
fn frames_that_enter_by_a_bvi_arrive_without_what_is_before_them() {
    let (mut lab, bvi) = lab_with_bvi();
    lab.ok("set interface l2 bridge test0 10");
    let ospf = packet([10, 7, 0, 1].into(), 1, 89);
    let group = MacAddr([1, 0, 0x5e, 0, 0, 5]);
    let hello = packet([224, 0, 0, 5].into(), 1, 89);
    passes(&mut lab, 0, 2, framed(bvi, host_mac(0, 2), ethertype::IPV4, &ospf));
    passes(&mut lab, 0, 2, framed(group, host_mac(0, 2), ethertype::IPV4, &hello));
    // The tag is behind one that is removed. With what is left of it the second one would have a
    // tag of the sender's choice.
    lab.ok("set interface l3 test0");
    lab.cli("create sub-interfaces test0 100");
    lab.ok("set interface state test0.100 up");
    lab.ok("set interface l2 bridge test0.100 10\nset interface l2 tag-rewrite test0.100 pop 1");
    for from in [host_mac(0, 2), MacAddr([2, 0, 0x81, 0, 0, 7])] {
        let tagged = [&group.0[..], &from.0, &[0x81, 0, 0, 100, 8, 0], &hello].concat();
        let sent = lab.exchange(0, vec![tagged]);
        assert_eq!(sent, [(2, framed(group, from, ethertype::IPV4, &hello))]);
    }
    // Answers go from the twin to the bridge, as they are written there.
    let answer = framed(host_mac(0, 2), bvi, ethertype::IPV4, &packet(ip4::ip(0, 2), 1, 89));
    let sent = lab.exchange(2, vec![answer.clone()]);
    let tagged = [&answer[..12], &[0x81, 0, 0, 100], &answer[12..]].concat();
    assert_eq!(sent, [(0, tagged)]);
    lab.close();
}

/// A lab with a pseudowire to the neighbour of interface 1: frames come behind label 70, and leave
/// behind label 60.
fn lab_with_pseudowire(workers: usize) -> Lab {
    let setup = Lab::of(&FEATURE).with(&thalweg_feat_l2::FEATURE).workers(workers);
    let mut lab = setup.interfaces(4).ip4(2..=2).start();
    lab.ok("mpls table add 0\nset interface mpls test1 enable");
    lab.cli("mpls tunnel add l2-only via 10.0.1.2 test1 out-labels 60");
    lab.ok("set interface state mpls-tunnel0 up");
    lab.ok("mpls local-label add 70 eos via l2-input-on mpls-tunnel0");
    lab
}

/// Sends a frame by the pseudowire, which the twin receives as it was sent, and another one back.
fn passes_by_pseudowire(lab: &mut Lab, there: Vec<u8>, back: Vec<u8>) {
    let behind = |label: u32, frame: &[u8], to: MacAddr, from: MacAddr| {
        let labelled = Packet::new().mpls(label).ttl(64).payload(frame).build();
        framed(to, from, ethertype::MPLS, &labelled)
    };
    let sent = lab.exchange(1, vec![behind(70, &there, our_mac(1), host_mac(1, 2))]);
    assert_eq!(sent, [(2, there)], "{}", lab.cli("show errors"));
    let sent = lab.exchange(2, vec![back.clone()]);
    let carried = behind(60, &back, host_mac(1, 2), our_mac(1));
    assert_eq!(sent, [(1, carried)], "{}", lab.cli("show errors"));
}

/// The twin of a BVI, of the end of a pseudowire, and of a sub-interface of that.
#[test]
fn frames_of_pseudowires_arrive_as_they_were_sent() {
    let (peer, group) = (MacAddr([2, 0, 0, 0, 7, 7]), MacAddr([1, 0, 0x5e, 0, 0, 5]));
    for workers in [1, 2] {
        for end in ["bvi7", "mpls-tunnel0", "mpls-tunnel0.5"] {
            let mut lab = lab_with_pseudowire(workers);
            if end == "bvi7" {
                lab.cli("bvi create instance 7");
                lab.ok("set interface l2 bridge bvi7 10 bvi\nset interface state bvi7 up");
                lab.ok("set interface l2 bridge mpls-tunnel0 10");
            }
            let tag: &[u8] = match end {
                "mpls-tunnel0.5" => {
                    for port in ["mpls-tunnel0", "test2"] {
                        lab.cli(&format!("create sub-interfaces {port} 5"));
                        lab.ok(&format!("set interface state {port}.5 up"));
                    }
                    pair(&mut lab, end, "test2.5");
                    &[0x81, 0, 0, 5]
                }
                _ => {
                    pair(&mut lab, end, "test2");
                    &[]
                }
            };
            lab.ok(&format!("set interface ip address {end} 10.7.0.1/24"));
            let sw_if = interface::find(&lab.c, end).unwrap();
            let us = interface::view(&lab.c, sw_if).unwrap().mac;
            let frame = |to: MacAddr, from: MacAddr, packet: &[u8]| {
                [&to.0[..], &from.0, tag, &[8, 0], packet].concat()
            };
            for (to, ip) in [(us, [10, 7, 0, 1]), (group, [224, 0, 0, 5])] {
                let packet = packet(ip.into(), 1, 89);
                passes_by_pseudowire(&mut lab, frame(to, peer, &packet), frame(peer, us, &packet));
            }
            lab.close();
        }
    }
}

/// Labelled packets of a twin leave by its interface, whatever that takes itself.
#[test]
fn labelled_packets_leave_as_they_were_written() {
    for workers in [1, 2] {
        let mut lab = lab(workers);
        for (label, ttl) in [(16, 1), (3, 255), (0xf_ffff, 64)] {
            let packet = Packet::new().mpls(label).ttl(ttl).payload(&[7; 60]).build();
            passes(&mut lab, 2, 0, framed(host_mac(0, 2), our_mac(0), ethertype::MPLS, &packet));
        }
        // None of the wire's goes to it.
        let packet = Packet::new().mpls(16).ttl(9).payload(&[7; 60]).build();
        lab.receive(0, vec![framed(our_mac(0), host_mac(0, 2), ethertype::MPLS, &packet)]);
        assert!(lab.sent().is_empty());
        lab.up(0, false);
        lab.receive(2, vec![framed(host_mac(0, 2), our_mac(0), ethertype::MPLS, &packet)]);
        assert!(lab.sent().is_empty());
        lab.close();
    }
}

/// Packets of a twin never come back to one, though they are to the router.
#[test]
fn packets_of_twins_make_no_circle() {
    let mut lab = lab(1);
    pair(&mut lab, "test1", "test3");
    // Frames come to each interface, and from each twin: all leave by their own interface, none is
    // delivered.
    let group = ([224, 0, 0, 5].into(), MacAddr([1, 0, 0x5e, 0, 0, 5]));
    let ours = [ip4::ip(0, 1), ip4::ip(1, 1)];
    let all = ours.iter().flat_map(|ip| [our_mac(0), our_mac(1)].map(|mac| (*ip, mac)));
    for (to, mac) in all.chain([group]) {
        for (twin, phy) in [(2, 0), (3, 1)] {
            let frame = framed(mac, our_mac(phy), ethertype::IPV4, &packet(to, 9, 6));
            passes(&mut lab, twin, phy, frame);
        }
    }
    lab.close();
}

#[test]
fn a_class_has_a_limit_of_its_own() {
    let mut lab = lab(1);
    lab.ok("set punt class other 0");
    lab.settle();
    lab.receive(0, vec![ip4::framed(0, 2, &packet(ip4::ip(0, 1), 1, 50))]);
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("linux-cp-punt", "punt-rate: class of packets above its limit"), 1);
    for protocol in [2, 89, 103] {
        passes(&mut lab, 0, 2, ip4::framed(0, 2, &packet(ip4::ip(0, 1), 1, protocol)));
    }
    let ldp = Packet::new().ipv4(ip4::ip(0, 2), [224, 0, 0, 2].into()).ttl(1).udp(646, 646).build();
    let group = MacAddr([1, 0, 0x5e, 0, 0, 2]);
    passes(&mut lab, 0, 2, framed(group, host_mac(0, 2), ethertype::IPV4, &ldp));
    lab.ok("set punt class other default");
    lab.settle();
    passes(&mut lab, 0, 2, ip4::framed(0, 2, &packet(ip4::ip(0, 1), 1, 50)));
    let shown = lab.cli("show punt");
    let row = shown.lines().find(|line| line.starts_with("other")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["other", "2000", "1", "1"]);
    // Counts stay when the pair goes.
    delete(&mut lab.c, SwIfIndex(1)).unwrap();
    assert_eq!(gate::all(&lab.c)[crate::class::Class::Other as usize].limited, 1);
    lab.settle();
    lab.close();
}

#[test]
fn without_its_pair_an_interface_is_as_before() {
    let mut lab = lab(1);
    delete(&mut lab.c, SwIfIndex(1)).unwrap();
    lab.settle();
    assert!(lab.cli("show interface").lines().all(|line| !line.starts_with("test2")));
    lab.receive(0, vec![ip4::framed(0, 2, &packet(ip4::ip(0, 1), 9, 89))]);
    let sent = lab.sent();
    assert_eq!(sent.len(), 1, "protocol unreachable");
    let error = ip4::icmp_error(0, 2, &sent[0].1);
    assert_eq!((error.kind, error.code), (3, 2));
    lab.close();
}
