//! Link-layer addresses of packets, and hosts on a link that are in no subnet of it.

use crate::router;
use std::net::{IpAddr, Ipv4Addr};
use thalweg_buffer::{GsoKind, Offload};
use thalweg_device::testing::ip4::{framed, ip, sound, udp};
use thalweg_device::testing::{Lab, host_mac, our_mac};
use thalweg_fib::RouteBook;
use thalweg_wire::arp::{ArpRepr, ArpView};
use thalweg_wire::build::Packet;

const GATEWAY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);

/// The ARP packet in a frame.
fn arp(frame: &[u8]) -> ArpRepr {
    assert_eq!(frame[12..14], [8, 6], "{frame:02x?}");
    ArpView::parse(&frame[14..]).expect("ARP").repr()
}

#[test]
fn a_priority_tag_counts_as_none() {
    let mut lab = router();
    // Priority 6, VLAN 0: who has 10.0.0.1?
    let mut ask = [[0xff; 6], host_mac(0, 9).0].concat();
    ask.extend([0x81, 0, 0xc0, 0]);
    ask.extend(&Packet::arp_request(host_mac(0, 9), ip(0, 9), ip(0, 1)).build()[12..]);
    for tpid in [[0x81, 0], [0x88, 0xa8]] {
        ask[12..14].copy_from_slice(&tpid);
        lab.receive(0, vec![ask.clone()]);
        let reply = lab.sent_one(0);
        assert_eq!(reply[..12], [host_mac(0, 9).0, our_mac(0).0].concat());
        assert_eq!(arp(&reply).target_ip, ip(0, 9));
    }
    // Packets, alone and among others.
    let plain = framed(0, 2, &udp(ip(0, 2), ip(1, 2), 20).build());
    let mut tagged = plain[..12].to_vec();
    tagged.extend([0x81, 0, 0xe0, 0]);
    tagged.extend(&plain[12..]);
    lab.receive(0, vec![tagged.clone()]);
    sound(1, 2, &lab.sent_one(1));
    let many = [vec![plain; 20], vec![tagged.clone(); 20]].concat();
    lab.receive(0, many);
    let sent = lab.sent();
    assert_eq!(sent.len(), 40);
    sent.iter().for_each(|(_, frame)| _ = sound(1, 2, frame));
    // A tag of a VLAN behind it, and a frame that ends within it.
    let mut both = tagged[..16].to_vec();
    both.extend([0x81, 0, 0, 5]);
    both.extend(&tagged[16..]);
    lab.receive(0, vec![both]);
    assert_eq!(lab.count("ethernet-input", "unknown vlan"), 1);
    lab.receive(0, vec![tagged[..16].to_vec()]);
    assert_eq!(lab.count("ethernet-input", "frame too short"), 1);
    lab.close();
}

#[test]
fn packets_to_one_host_in_a_broadcast_are_dropped_without_an_answer() {
    let mut lab = router();
    let to = |mac: [u8; 6], packet: Packet| {
        let mut frame = framed(0, 2, &packet.build());
        frame[..6].copy_from_slice(&mac);
        frame
    };
    let groups = [[0xff; 6], [1, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]];
    let cases = || {
        [
            udp(ip(0, 2), ip(1, 2), 20),
            udp(ip(0, 2), ip(1, 2), 20).ttl(1),
            udp(ip(0, 2), ip(0, 1), 20),
            udp(ip(0, 2), [192, 0, 2, 1].into(), 20),
            Packet::new().ipv4(ip(0, 2), ip(0, 1)).icmp_echo_request(1, 1),
        ]
    };
    let reason = "ip4 unicast destination in a link-layer broadcast or multicast";
    let mut dropped = 0;
    for mac in groups {
        for packet in cases() {
            lab.receive(0, vec![to(mac, packet)]);
            dropped += 1;
            assert!(lab.sent().is_empty());
            assert_eq!(lab.count("ip4-input", reason), dropped);
        }
    }
    // One is among others, in a frame of its own kind.
    let mut many = vec![framed(0, 2, &udp(ip(0, 2), ip(1, 2), 20).build()); 30];
    many.insert(7, to([0xff; 6], udp(ip(0, 2), ip(1, 2), 20)));
    lab.receive(0, many);
    assert_eq!((lab.sent().len(), lab.count("ip4-input", reason)), (30, dropped + 1));
    // Packets to all hosts come in such frames.
    lab.receive(0, vec![to([0xff; 6], udp(ip(0, 2), Ipv4Addr::BROADCAST, 20))]);
    lab.receive(0, vec![to(groups[1], udp(ip(0, 2), [224, 0, 0, 1].into(), 20))]);
    assert_eq!(lab.count("ip4-input", reason), dropped + 1);
    assert!(lab.sent().is_empty());
    assert_eq!(lab.count("ip4-icmp-error", "icmp errors sent"), 0);
    lab.close();
}

#[test]
fn packets_with_link_local_addresses_stay_on_their_link() {
    let mut lab = router();
    let local = Ipv4Addr::new(169, 254, 7, 7);
    lab.ok("set interface ip address test2 169.254.7.1/24");
    lab.neighbor(2, local, host_mac(2, 7));
    lab.ok("ip route add 169.254.99.0/24 via 10.0.1.2");
    let refused = "link-local address: not forwarded";
    let cases = [
        (0, udp(ip(0, 2), local, 20)),
        (0, udp(ip(0, 2), [169, 254, 99, 1].into(), 20)),
        (2, udp(local, ip(1, 2), 20)),
    ];
    for (n, (port, packet)) in cases.into_iter().enumerate() {
        lab.receive_packet(port, 2, packet.clone());
        let many = vec![framed(port, 2, &packet.build()); 20];
        lab.receive(port, many);
        assert!(lab.sent().is_empty());
        assert_eq!(lab.count("ip4-rewrite", refused), 21 * (n as u64 + 1));
    }
    // The router itself talks to hosts of its link.
    let ask = Packet::new().ipv4(local, [169, 254, 7, 1].into()).icmp_echo_request(1, 1);
    lab.receive_packet(2, 7, ask);
    let reply = lab.sent_one(2);
    assert_eq!(reply[..6], host_mac(2, 7).0);
    lab.close();
}

/// An address of 32 bits, a route to the gateway's interface, and all else by way of the gateway.
#[test]
fn a_gateway_outside_of_all_subnets_is_asked_and_answered() {
    let mut lab = router();
    lab.ok("set interface ip address del test1 10.0.1.1/24\n\
         set interface ip address test1 203.0.113.7/32\n\
         ip route add 198.51.100.1/32 via test1\n\
         ip route add 0.0.0.0/0 via 198.51.100.1");
    let mac = host_mac(1, 77);
    // The gateway asks first: it is answered, and learned.
    let reply = arp(&until_answered(&mut lab, 1, OURS));
    assert_eq!((reply.sender_ip, reply.target_ip), (OURS, GATEWAY));
    lab.receive_packet(0, 2, udp(ip(0, 2), [8, 8, 8, 8].into(), 20));
    assert_eq!(lab.sent_one(1)[..6], mac.0);
    // Its own address is not asked for again, packet by packet.
    for _ in 0..3 {
        lab.receive_packet(0, 2, udp(ip(0, 2), GATEWAY, 20));
        assert_eq!(lab.sent_one(1)[..6], mac.0);
    }
    // Forgotten, it is asked for, and the answer is heard.
    lab.ok("clear ip neighbors");
    lab.c.sync();
    lab.deliver(0, vec![framed(0, 2, &udp(ip(0, 2), [8, 8, 8, 8].into(), 20).build())]);
    lab.until("a request", |lab| lab.sent_frames() > 0);
    let asked = arp(&lab.sent_one(1));
    assert_eq!((asked.sender_ip, asked.target_ip), (OURS, GATEWAY));
    let answer = Packet::arp_reply(mac, &asked).build();
    lab.receive(1, vec![answer]);
    lab.until("the packet", |lab| lab.sent_frames() > 0);
    assert_eq!(lab.sent_one(1)[..6], mac.0);
    // Without its route, it is a stranger again.
    lab.ok("ip route del 0.0.0.0/0\nip route del 198.51.100.1/32");
    let ask = || Packet::arp_request(mac, GATEWAY, OURS).build();
    let reason = "IP4 source address not local to subnet";
    lab.until("silence", |lab| {
        lab.receive(1, vec![ask()]);
        lab.sent();
        lab.count("arp-input", reason) > 0
    });
    // A next hop that is named with its interface is no stranger, but on that interface only.
    lab.ok("ip route add 192.0.2.0/24 via 198.51.100.1 test1");
    assert_eq!(arp(&until_answered(&mut lab, 1, OURS)).target_ip, GATEWAY);
    let before = lab.count("arp-input", reason);
    lab.receive(2, vec![Packet::arp_request(mac, GATEWAY, ip(2, 1)).build()]);
    assert_eq!(lab.count("arp-input", reason), before + 1);
    lab.close();
}

/// The answer to the gateway's request for an address: workers learn of routes a moment later.
fn until_answered(lab: &mut Lab, n: u8, address: Ipv4Addr) -> Vec<u8> {
    let ask = Packet::arp_request(host_mac(1, 77), GATEWAY, address).build();
    lab.until("an answer", |lab| {
        lab.receive(n, vec![ask.clone()]);
        lab.sent_frames() > 0
    });
    lab.sent_one(n)
}

/// A sender without DF that leaves segmentation to its device, and a narrow link.
#[test]
fn segments_that_exceed_the_mtu_are_fragmented() {
    let mut lab = router();
    lab.ok("set interface mtu packet 576 test1");
    let data: Vec<u8> = (0..20_000).map(|i| (i * 7 % 251) as u8).collect();
    let tcp = Packet::new().ipv4(ip(0, 2), ip(1, 2)).tcp(1, 2).payload(&data);
    let datagram = Packet::new().ipv4(ip(0, 2), ip(1, 2)).udp(1, 2).payload(&data);
    for (packet, gso, header, csum_offset) in
        [(tcp, GsoKind::Tcp4, 20, 16), (datagram, GsoKind::Udp, 8, 6)]
    {
        let (gso_size, hdr_len) = (1400, 20 + header);
        let offload = Offload {
            gso,
            gso_size,
            hdr_len,
            csum_start: 20,
            csum_offset,
            needs_csum: true,
            ..Offload::default()
        };
        lab.receive_offload(0, framed(0, 2, &packet.build()), offload);
        let sent = lab.sent();
        // Each segment has an identification of its own, and is put together from three fragments.
        let mut segments: Vec<(u16, Vec<u8>)> = Vec::new();
        for (_, frame) in &sent {
            let part = sound(1, 2, frame);
            assert!(frame.len() <= 14 + 576);
            if part.fragment_offset() == 0 {
                segments.push((part.id(), Vec::new()));
            }
            let (id, whole) = segments.last_mut().expect("a first fragment");
            assert_eq!((*id, whole.len()), (part.id(), part.fragment_offset()));
            whole.extend(part.payload());
            if !part.more_fragments() {
                let kind = if header == 8 { 17 } else { 6 };
                assert!(sums_up(whole, kind), "the checksum of segment {id}");
            }
        }
        assert_eq!(segments.len(), data.len().div_ceil(1400));
        let all: Vec<u8> =
            segments.iter().flat_map(|(_, whole)| &whole[usize::from(header)..]).copied().collect();
        assert_eq!(all, data);
    }
    assert_eq!(lab.dropped(), 0);
    lab.close();
}

/// True if the checksum of a segment from 10.0.0.2 to 10.0.1.2 is right.
fn sums_up(segment: &[u8], protocol: u8) -> bool {
    let mut bytes = [ip(0, 2).octets(), ip(1, 2).octets()].concat();
    bytes.extend([0, protocol]);
    bytes.extend((segment.len() as u16).to_be_bytes());
    bytes.extend(segment);
    thalweg_wire::checksum::verify(&bytes)
}

#[test]
fn samples_have_the_masks_of_subnets() {
    let mut lab = router();
    lab.ok("ip route add 192.0.2.0/25 via 10.0.1.2\nip route add 192.0.2.9/32 via 10.0.1.2");
    let books = lab.c.shared::<RouteBook>().all();
    let domain = lab.c.domain().clone();
    let mut reader = domain.register().expect("a reader");
    let guard = reader.enter();
    let rx_if = lab.sw_if(0);
    let mask = |to: Ipv4Addr| books[0].prefix_len(&guard, rx_if, IpAddr::V4(to));
    assert_eq!(mask(ip(1, 2)), Some(24), "a neighbour");
    assert_eq!(mask(ip(1, 99)), Some(24), "nobody");
    assert_eq!(mask([192, 0, 2, 1].into()), Some(25));
    assert_eq!(mask([192, 0, 2, 9].into()), Some(32), "a route of its own");
    assert_eq!(mask([8, 8, 8, 8].into()), None);
    drop(reader);
    lab.close();
}

#[test]
fn routes_to_an_interface_use_the_neighbours_that_it_has() {
    let mut lab = router();
    lab.ok("ip table add 7\nip route add 10.0.1.2/32 table 7 via test1\n\
         ip route add 0.0.0.0/0 via ip4-lookup-in-table 7");
    // 10.0.1.2 is in the subnet of table 0, too: another way there.
    lab.ok("ip route add 198.51.100.0/24 via 10.0.1.2 test1\n\
         ip route add 10.0.1.0/28 table 7 via test1");
    let there = |lab: &mut Lab, host: u8| {
        lab.cli(&format!("show ip fib table 7 10.0.1.{host}/32")).contains("ipv4 via")
    };
    assert!((2..=4).all(|host| there(&mut lab, host)));
    // One that comes and goes.
    lab.neighbor(1, ip(1, 5), host_mac(1, 5));
    assert!(there(&mut lab, 5));
    lab.ok("set ip neighbor del test1 10.0.1.5");
    assert!(!there(&mut lab, 5));
    lab.ok("ip route del 10.0.1.0/28 table 7");
    assert_eq!([2, 3, 4].map(|host| there(&mut lab, host)), [true, false, false]);
    lab.ok("ip route replace 10.0.1.2/32 table 7 drop");
    assert!(!there(&mut lab, 2));
    // The interface's own table keeps its own.
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(1, 3), 8));
    sound(1, 3, &lab.sent_one(1));
    lab.close();
}

/// Without addresses, an interface can change its table, and the neighbours that routes put on it
/// go with it; those routes' table has them, too.
#[test]
fn neighbours_follow_their_interface_to_another_table() {
    let mut lab = router();
    lab.ok("ip table add 7\nip table add 8\nset interface ip address del test1 all\n\
         ip route add 10.0.1.2/31 table 8 via test1");
    let there = |lab: &mut Lab, table: u32| {
        [2, 3, 4].map(|host| {
            let text = lab.cli(&format!("show ip fib table {table} 10.0.1.{host}/32"));
            text.contains("ipv4 via")
        })
    };
    let begun = std::time::Instant::now();
    while !there(&mut lab, 0)[0] {
        assert!(begun.elapsed() < thalweg_testkit::WAIT_LIMIT, "{}", lab.cli("show ip fib"));
        lab.c.run_once(Some(std::time::Duration::from_millis(20)));
    }
    let all = |lab: &mut Lab| [0, 7, 8].map(|table| there(lab, table));
    let (none, both) = ([false; 3], [true, true, false]);
    assert_eq!(all(&mut lab), [both, none, both]);
    lab.ok("set interface ip table test1 7");
    assert_eq!(all(&mut lab), [none, both, both]);
    lab.ok("set interface ip table test1 8");
    assert_eq!(all(&mut lab), [none, none, both]);
    lab.ok("set interface ip table test1 0");
    assert_eq!(all(&mut lab), [both, none, both]);
    lab.ok("set ip neighbor del test1 10.0.1.2\nset ip neighbor del test1 10.0.1.3");
    assert_eq!(all(&mut lab), [none; 3]);
    lab.close();
}

#[test]
fn one_address_may_be_on_two_interfaces() {
    let mut lab = router();
    let host = ip(1, 2);
    let fib = |lab: &mut Lab| lab.cli("show ip fib 10.0.1.2/32");
    lab.neighbor(2, host, host_mac(2, 2));
    lab.ok("ip route add 198.51.100.0/24 via 10.0.1.2 test2");
    assert!(fib(&mut lab).contains("test1"), "the first stays where its subnet is");
    for (dst, n) in [([10, 0, 1, 2], 1), ([198, 51, 100, 1], 2)] {
        lab.receive_packet(0, 2, udp(ip(0, 2), dst.into(), 8));
        sound(n, 2, &lab.sent_one(n));
    }
    // A route puts it there, too.
    lab.ok("ip route add 10.0.1.2/32 via test2\nset ip neighbor del test2 10.0.1.2");
    lab.receive_packet(0, 2, udp(ip(0, 2), ip(1, 3), 8));
    sound(1, 3, &lab.sent_one(1));
    lab.ok("ip route del 10.0.1.2/32");
    lab.receive_packet(0, 2, udp(ip(0, 2), host, 8));
    sound(1, 2, &lab.sent_one(1));
    lab.close();
}

/// Builds an ARP request for `target` from a host behind test0.
fn who_has(sender: Ipv4Addr, host: u8, target: Ipv4Addr) -> Vec<u8> {
    Packet::arp_request(host_mac(0, host), sender, target).build()
}

#[test]
fn arp_answers_for_local_routes_and_for_other_hosts() {
    let mut lab = router();
    let answered = |lab: &mut Lab, frame: Vec<u8>| {
        lab.receive(0, vec![frame]);
        let sent = lab.sent();
        sent.first().map(|(_, frame)| arp(frame)).inspect(|reply| {
            assert_eq!((sent.len(), reply.sender_mac), (1, our_mac(0)));
        })
    };
    let far = Ipv4Addr::new(198, 51, 100, 1);
    let ask = |target| who_has(ip(0, 9), 9, target);
    assert!(answered(&mut lab, ask(far)).is_none());
    lab.ok("ip route add 198.51.100.1/32 local");
    assert_eq!(answered(&mut lab, ask(far)).map(|r| r.sender_ip), Some(far));
    // Another interface's own address is not this one's.
    assert!(answered(&mut lab, ask(ip(1, 1))).is_none());
    lab.ok("ip route del 198.51.100.1/32");
    assert!(answered(&mut lab, ask(far)).is_none());

    lab.ok("set arp proxy start 10.0.1.2 end 10.0.1.9");
    assert!(answered(&mut lab, ask(ip(1, 2))).is_none(), "not on this interface");
    lab.ok("set interface proxy-arp test0 enable");
    for (host, is_answered) in [(2, true), (9, true), (10, false)] {
        assert_eq!(answered(&mut lab, ask(ip(1, host))).is_some(), is_answered, "{host}");
    }
    // A mirror case: a host that has the router's own address asks, and is not learned.
    let before = lab.cli("show ip neighbors");
    let mirrored = answered(&mut lab, who_has(ip(0, 1), 8, ip(1, 2)));
    assert_eq!(mirrored.map(|r| (r.sender_ip, r.target_ip)), Some((ip(1, 2), ip(0, 1))));
    assert_eq!(lab.cli("show ip neighbors").lines().count(), before.lines().count());
    let text = lab.cli("show arp proxy");
    assert_eq!(
        text,
        "Proxy arps enabled for:\nFib_index 0   10.0.1.2 - 10.0.1.9 \nInterfaces: test0\n"
    );
    // A range of another table is not for this interface.
    lab.ok("ip table add 7\nset arp proxy del start 10.0.1.2 end 10.0.1.9\n\
         set ip arp proxy 10.0.1.2 - 10.0.1.9 table-id 7");
    assert!(answered(&mut lab, ask(ip(1, 2))).is_none());
    for (line, want) in [
        ("set arp proxy start 10.0.0.9 end 10.0.0.1", "ends at 10.0.0.1, before"),
        ("set arp proxy table-id 9 start 10.0.0.1 end 10.0.0.9", "no IPv4 table 9"),
        ("set arp proxy del start 10.0.0.1 end 10.0.0.9", "no such range 10.0.0.1 - 10.0.0.9"),
        ("set arp proxy start 10.0.0.1", "last address"),
        ("set interface proxy-arp test0", "expected `enable', `disable'"),
    ] {
        let text = lab.cli(line);
        assert!(text.contains(want), "{line}: {text}");
    }
    // Ranges go with their table; another one with its number has none.
    lab.ok("ip table del 7\nip table add 7");
    assert!(!lab.cli("show arp proxy").contains("10.0.1.2"));
    let text = lab.cli("set ip arp proxy 10.0.1.2 - 10.0.1.9 table-id 7 del");
    assert!(text.contains("no such range"), "{text}");
    lab.ok("set interface proxy-arp test0 disable");
    assert_eq!(lab.cli("show arp proxy"), "");
    lab.close();
}

#[test]
fn directed_broadcasts_are_sent_where_they_are_wanted() {
    let mut lab = router();
    thalweg_feat_neighbor::ask_for_next_hops(&mut lab.c);
    let to_all = Ipv4Addr::new(10, 0, 1, 255);
    let sent = |lab: &mut Lab| {
        lab.receive_packet(0, 2, udp(ip(0, 2), to_all, 8));
        let sent = lab.sent();
        sent.into_iter().map(|(sw_if, frame)| (sw_if, frame[..14].to_vec())).collect::<Vec<_>>()
    };
    let header = [&[0xff; 6][..], &our_mac(1).0, &[8, 0]].concat();
    let broadcast = |lab: &Lab| vec![(lab.sw_if(1), header.clone())];
    assert_eq!(sent(&mut lab), []);
    lab.ok("set interface ip directed-broadcast test1 enable");
    assert_eq!(sent(&mut lab), broadcast(&lab));
    // The same holds after the interface was down, had another address, or its MAC address changed.
    lab.up(1, false);
    assert_eq!(sent(&mut lab), []);
    lab.up(1, true);
    assert_eq!(sent(&mut lab), broadcast(&lab));
    lab.ok("set interface ip address del test1 10.0.1.1/24");
    assert_eq!(sent(&mut lab), []);
    lab.ok("set interface ip address test1 10.0.1.9/24");
    assert_eq!(sent(&mut lab), broadcast(&lab));
    // Nobody is asked for it, and it is no neighbour.
    assert!(!lab.cli("show ip neighbors").contains("10.0.1.255"));
    // A broadcast of the link does not come back to it.
    let mut own = framed(1, 2, &udp(ip(1, 2), to_all, 8).build());
    own[..6].fill(0xff);
    lab.receive(1, vec![own]);
    assert!(lab.sent().is_empty());
    lab.ok("set interface ip directed-broadcast test1 disable");
    assert_eq!(sent(&mut lab), []);
    let said = lab.cli("set interface ip directed-broadcast test1 sometimes");
    assert!(said.contains("enable"), "{said}");
    lab.close();
}
