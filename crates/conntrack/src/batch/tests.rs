use super::*;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thalweg_wire::build::Packet;
use thalweg_wire::bytes::{be16, be32};
use thalweg_wire::checksum;
use thalweg_wire::icmpv4::IcmpRepr;
use thalweg_wire::icmpv6::Icmp6Repr;
use thalweg_wire::ip::protocol;
use thalweg_wire::owner;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn read(l3: &[u8], checks: Checks) -> (Headers, Option<Tuple>) {
    let mut batch = Batch::default();
    batch.add_ipv4(5, l3, l3.len(), checks);
    (batch.headers[0], batch.tuple(0))
}

#[test]
fn whole_packets_are_read() {
    let udp = Packet::new().ipv4(B, A).udp(1000, 53).payload(b"abc").build();
    let (headers, tuple) = read(&udp, Checks::ALL);
    assert_eq!((headers.kind, headers.swapped, headers.bytes), (Kind::Datagram, true, 31));
    let want = Tuple { src: B.into(), dst: A.into(), protocol: 17, sport: 1000, dport: 53 };
    assert_eq!(tuple, Some(want));
    let ping = Packet::new().ipv4(B, A).icmp_echo_request(7, 1).build();
    let (headers, tuple) = read(&ping, Checks::ALL);
    assert_eq!((headers.kind, headers.swapped), (Kind::Query, false));
    let want = Tuple { src: B.into(), dst: A.into(), protocol: 1, sport: 7, dport: 8 };
    assert_eq!(tuple, Some(want));
}

#[test]
fn what_is_broken_is_invalid() {
    let tcp = Packet::new().ipv4(A, B).tcp(1000, 80).payload(b"abcd").build();
    assert_eq!(read(&tcp, Checks::ALL).0.kind, Kind::Tcp);
    let with = |at: usize, value: u8| {
        let mut packet = tcp.clone();
        packet[at] = value;
        read(&packet, Checks::NONE).0.kind
    };
    // Version, length, port, offset.
    for (at, value) in [(0, 0x65), (3, 200), (3, 30), (32, 0x40), (32, 0xf0)] {
        assert_eq!(with(at, value), Kind::Invalid, "{at}: {value:#x}");
    }
    assert_eq!(with(6, 0x20), Kind::Tcp, "a first fragment");
    assert_eq!(with(7, 1), Kind::Fragment);
    let mut no_port = tcp.clone();
    no_port[22..24].fill(0);
    assert_eq!(read(&no_port, Checks::NONE).0.kind, Kind::Invalid);
    for (at, checks) in [
        (8, Checks { network: true, transport: false }),
        (43, Checks { network: false, transport: true }),
    ] {
        let mut packet = tcp.clone();
        packet[at] ^= 1;
        assert_eq!(read(&packet, checks).0.kind, Kind::Invalid);
        assert_eq!(read(&packet, Checks::NONE).0.kind, Kind::Tcp);
    }
}

/// The UDP length covers all fragments together, and later ones have no ports.
#[test]
fn fragments_are_known_by_their_datagram() {
    let mut first = Packet::new().ipv4(A, B).udp(1000, 53).payload_len(100).build();
    (first[6], first[25]) = (0x20, 255);
    assert_eq!(read(&first, Checks::NONE).0.kind, Kind::Datagram);
    let whole = Packet::new().ipv4(A, B).udp(1000, 53).build();
    assert_eq!(Fragment::<IPV4>::read(5, &whole), None);
    let mut later = first.clone();
    (later[6], later[7]) = (0, 16);
    let mut batch = Batch::default();
    batch.add_ipv4(5, &whole, whole.len(), Checks::ALL);
    assert!(!batch.has_fragments());
    batch.add_ipv4(5, &later, later.len(), Checks::NONE);
    assert!(batch.has_fragments());
    assert_eq!((batch.headers[1].kind, batch.tuple(1)), (Kind::Fragment, None));
    assert_eq!(batch.owner_hash(1), None);
    let [one, two] = [&first, &later].map(|l3| Fragment::<IPV4>::read(5, l3).unwrap());
    assert_eq!((one.key, one.anywhere()), (two.key, two.anywhere()));
    assert_eq!((one.data, two.data, one.is_first()), ((0, 108), (128, 236), true));
    let other = Fragment::<IPV4>::read(6, &later).unwrap();
    assert_eq!((other.key == one.key, other.anywhere() == one.anywhere()), (false, true));
    later[5] ^= 1;
    assert_ne!(Fragment::<IPV4>::read(5, &later).unwrap().anywhere(), one.anywhere());
}

const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

fn read6(l3: &[u8], checks: Checks) -> (Headers, Option<Tuple>) {
    let mut batch = Batch::default();
    batch.add_ipv6(5, l3, l3.len(), checks);
    (batch.headers[0], batch.tuple(0))
}

/// Puts extension headers, with their types, in front of the transport.
fn extended(l3: &[u8], headers: &[(u8, &[u8])]) -> Vec<u8> {
    let mut l3 = l3.to_vec();
    for (kind, header) in headers.iter().rev() {
        let mut header = header.to_vec();
        header[0] = std::mem::replace(&mut l3[6], *kind);
        let length = be16(&l3[..40].try_into().unwrap() as &[u8; 40], 4) + header.len() as u16;
        l3[4..6].copy_from_slice(&length.to_be_bytes());
        l3.splice(40..40, header);
    }
    l3
}

const OPTIONS: [u8; 8] = [0, 0, 1, 4, 0, 0, 0, 0];

#[test]
fn whole_packets_of_ipv6_are_read() {
    let udp = Packet::new().ipv6(B6, A6).udp(1000, 53).payload(b"abc").build();
    for l3 in [udp.clone(), extended(&udp, &[(0, &OPTIONS), (60, &OPTIONS)])] {
        let (headers, tuple) = read6(&l3, Checks::ALL);
        assert_eq!((headers.kind, headers.swapped), (Kind::Datagram, true));
        assert_eq!(headers.bytes as usize, l3.len());
        let want = Tuple { src: B6.into(), dst: A6.into(), protocol: 17, sport: 1000, dport: 53 };
        assert_eq!(tuple, Some(want));
    }
    let ping = Packet::new().ipv6(B6, A6).icmp6_echo_request(7, 1).build();
    let (headers, tuple) = read6(&ping, Checks::ALL);
    assert_eq!((headers.kind, headers.swapped), (Kind::Query, false));
    let want = Tuple { src: B6.into(), dst: A6.into(), protocol: 58, sport: 7, dport: 128 };
    assert_eq!(tuple, Some(want));
    let tcp = Packet::new().ipv6(A6, B6).tcp(1000, 80).payload(b"abcd").build();
    let behind = extended(&tcp, &[(60, &OPTIONS)]);
    let (one, other) = (read6(&tcp, Checks::ALL), read6(&behind, Checks::ALL));
    assert_eq!((one.0.segment, one.1), (other.0.segment, other.1));
}

#[test]
fn what_is_broken_of_ipv6_is_invalid() {
    let tcp = Packet::new().ipv6(A6, B6).tcp(1000, 80).payload(b"abcd").build();
    assert_eq!(read6(&tcp, Checks::ALL).0.kind, Kind::Tcp);
    for (at, value) in [(0, 0x45), (4, 1), (5, 10), (52, 0x40), (52, 0xf0)] {
        let mut packet = tcp.clone();
        packet[at] = value;
        assert_eq!(read6(&packet, Checks::NONE).0.kind, Kind::Invalid, "{at}: {value:#x}");
    }
    for at in [8, 39, 63] {
        let mut packet = tcp.clone();
        packet[at] ^= 1;
        assert_eq!(read6(&packet, Checks::ALL).0.kind, Kind::Invalid);
        assert_eq!(read6(&packet, Checks::NONE).0.kind, Kind::Tcp);
    }
    // A checksum of zero means none in IPv4 only.
    let udp = Packet::new().ipv6(A6, B6).udp(1, 2).no_checksum().build();
    assert_eq!(read6(&udp, Checks::ALL).0.kind, Kind::Invalid);
    let udp = Packet::new().ipv4(A, B).udp(1, 2).no_checksum().build();
    assert_eq!(read(&udp, Checks::ALL).0.kind, Kind::Datagram);
    // ICMP of the other family.
    let icmp = Packet::new().ipv6(A6, B6).protocol(1).payload(&[8, 0, 0, 0, 0, 1, 0, 1]).build();
    assert_eq!(read6(&icmp, Checks::NONE).0.kind, Kind::Invalid);
    let icmp = Packet::new().ipv4(A, B).protocol(58).payload(&[128, 0, 0, 0, 0, 1, 0, 1]);
    assert_eq!(read(&icmp.build(), Checks::NONE).0.kind, Kind::Invalid);
}

/// End of the first fragment, whatever headers are in the fragmented part.
#[test]
fn fragments_of_ipv6_are_known_by_their_datagram() {
    let part = |offset: u16, more: u16, id: u8| {
        let [high, low] = (offset | more).to_be_bytes();
        [0, 0, high, low, 0, 0, 0, id]
    };
    let udp = Packet::new().ipv6(A6, B6).udp(1000, 53).payload_len(100).build();
    let first = extended(&udp, &[(0, &OPTIONS), (44, &part(0, 1, 9)), (60, &OPTIONS)]);
    let later = extended(&udp, &[(0, &OPTIONS), (44, &part(120, 1, 9))]);
    let atomic = extended(&udp, &[(44, &part(0, 0, 9))]);
    assert_eq!(read6(&first, Checks::ALL).0.kind, Kind::Datagram);
    assert_eq!(read6(&atomic, Checks::ALL).0.kind, Kind::Datagram);
    assert_eq!(Fragment::<IPV6>::read(5, &atomic), None);
    assert_eq!(Fragment::<IPV6>::read(5, &udp), None);
    let mut batch = Batch::default();
    batch.add_ipv6(5, &atomic, atomic.len(), Checks::ALL);
    assert!(!batch.has_fragments());
    batch.pad(3);
    batch.add_ipv6(5, &later, later.len(), Checks::NONE);
    assert!(batch.has_fragments());
    assert_eq!((batch.headers[1].kind, batch.tuple(1)), (Kind::Invalid, None));
    assert_eq!((batch.headers[3].kind, batch.tuple(3)), (Kind::Fragment, None));
    let [one, two] = [&first, &later].map(|l3| Fragment::<IPV6>::read(5, l3).unwrap());
    assert_eq!((one.key, one.anywhere()), (two.key, two.anywhere()));
    assert_eq!((one.data, two.data, one.is_first()), ((0, 116), (120, 228), true));
    let other = Fragment::<IPV6>::read(6, &later).unwrap();
    assert_eq!((other.key == one.key, other.anywhere() == one.anywhere()), (false, true));
    let other = extended(&udp, &[(44, &part(120, 1, 8))]);
    assert_ne!(Fragment::<IPV6>::read(5, &other).unwrap().anywhere(), one.anywhere());
}

proptest! {
    /// The fast reader agrees with the general one.
    #[test]
    fn plain_segments_are_read_the_same(
        ips: [u32; 2], head in prop::collection::vec(any::<u8>(), 20), payload in 0usize..30,
        odd in (0usize..70, any::<u8>()), zone: u16, cut in 0usize..70, sums: [bool; 3],
    ) {
        let [src, dst] = ips.map(Ipv4Addr::from_bits);
        let mut l3 = Packet::new().ipv4(src, dst).tcp(1, 2).payload(&vec![7; payload]).build();
        l3[20..40].copy_from_slice(&head);
        l3[32] = 0x50 | head[12] & 3;
        if let Some(byte) = l3.get_mut(odd.0) {
            *byte = odd.1;
        }
        let checks = Checks { network: sums[0], transport: sums[1] };
        if sums[2] {
            let h: [u8; 20] = l3[..20].try_into().unwrap();
            l3[10..12].copy_from_slice(&checksum::ipv4_header(&h).to_be_bytes());
            let (src, dst) = (be32(&h, 12).into(), be32(&h, 16).into());
            let length = l3.len() as u32 - 20;
            let pseudo = checksum::pseudo_v4(src, dst, protocol::TCP, length);
            let _ = thalweg_wire::tcp::fill_checksum(pseudo, &mut l3[20..]);
        }
        let at_hand = &l3[..cut.min(l3.len())];
        let (mut key, mut headers) = ([0; 2], Headers::default());
        if plain_tcp(zone, at_hand, l3.len(), &mut key, &mut headers)
            && intact(at_hand, checks)
        {
            // The general reader rejects headers that are truncated within the options.
            let (k, h) = read_ipv4(zone, at_hand, l3.len(), checks);
            if h.kind == Kind::Tcp {
                prop_assert_eq!((key, headers), (k, h));
            } else {
                prop_assert!(at_hand.len() < l3.len());
            }
        }
    }

    #[test]
    fn any_bytes_are_read(data in prop::collection::vec(any::<u8>(), 0..120), checks: bool) {
        let checks = if checks { Checks::ALL } else { Checks::NONE };
        let mut data = data;
        if let Some(first) = data.first_mut() { *first = 0x45 }
        let mut batch = Batch::default();
        batch.add_ipv4(0, &data, data.len(), checks);
        prop_assert_eq!(batch.len(), 1);
        let _ = batch.tuple(0);
        if let Some(hash) = batch.owner_hash(0) {
            prop_assert_eq!(owner::flow(&data).map(|t| t.symmetric_hash32()), Some(hash));
        }
    }

    #[test]
    fn plain_segments_of_ipv6_are_read_the_same(
        ips: [u128; 2], near: bool, head in prop::collection::vec(any::<u8>(), 20),
        payload in 0usize..30, odd in (0usize..90, any::<u8>()), zone: u16, cut in 0usize..90,
        sums: [bool; 2],
    ) {
        // Addresses that are the same, or differ in one half only.
        let ips = if near { ips.map(|ip| ip & (1 << 64 | 1)) } else { ips };
        let [src, dst] = ips.map(Ipv6Addr::from_bits);
        let mut l3 = Packet::new().ipv6(src, dst).tcp(1, 2).payload(&vec![7; payload]).build();
        l3[40..60].copy_from_slice(&head);
        l3[52] = 0x50 | head[12] & 3;
        if let Some(byte) = l3.get_mut(odd.0) {
            *byte = odd.1;
        }
        let checks = Checks { network: false, transport: sums[0] };
        if sums[1] {
            let length = l3.len() as u32 - 40;
            let pseudo = checksum::pseudo_v6(&src, &dst, protocol::TCP, length);
            let _ = thalweg_wire::tcp::fill_checksum(pseudo, &mut l3[40..]);
        }
        let at_hand = &l3[..cut.min(l3.len())];
        let (mut key, mut headers) = ([0; 5], Headers::default());
        if plain_tcp6(zone, at_hand, l3.len(), &mut key, &mut headers)
            && (!checks.transport || intact6(at_hand, headers.bytes))
        {
            let (k, h) = read_ipv6(zone, at_hand, l3.len(), checks);
            if h.kind == Kind::Tcp {
                prop_assert_eq!((key, headers), (k, h));
                let tuple = Tuple::of_key(&key, headers.swapped);
                let ends = (IpAddr::V6(src), IpAddr::V6(dst));
                if odd.0 < 8 || odd.0 >= 40 {
                    prop_assert_eq!((tuple.src, tuple.dst), ends);
                }
                prop_assert_eq!(tuple.key::<IPV6>(zone), Some((key, headers.swapped)));
            } else {
                prop_assert!(at_hand.len() < l3.len());
            }
        }
    }

    #[test]
    fn any_bytes_of_ipv6_are_read(
        data in prop::collection::vec(any::<u8>(), 0..160), checks: bool, length: bool,
        next in prop_oneof![Just(6u8), Just(17), Just(58), Just(44), Just(60), any::<u8>()],
    ) {
        let checks = if checks { Checks::ALL } else { Checks::NONE };
        let mut data = data;
        if let Some(first) = data.first_mut() { *first = 0x60 }
        if length && data.len() >= 40 {
            let payload = data.len() as u16 - 40;
            data[4..6].copy_from_slice(&payload.to_be_bytes());
            data[6] = next;
        }
        let mut batch = Batch::default();
        batch.add_ipv6(0, &data, data.len(), checks);
        prop_assert_eq!(batch.len(), 1);
        let _ = (batch.tuple(0), Fragment::<IPV6>::read(0, &data));
        if let Some(hash) = batch.owner_hash(0) {
            prop_assert_eq!(owner::flow(&data).map(|t| t.symmetric_hash32()), Some(hash));
        }
    }

    #[test]
    fn owners_of_ipv6_are_those_of_frames(
        ends in any::<[u128; 2]>(), ports in any::<[u16; 2]>(), kind in 0u8..5, zone: u16,
    ) {
        let [from, to] = ends.map(Ipv6Addr::from_bits);
        let ports = ports.map(|port| port.max(1));
        let packet = Packet::new().ipv6(from, to);
        let packet = match kind {
            0 => packet.tcp(ports[0], ports[1]).payload(b"abcd"),
            1 => packet.udp(ports[0], ports[1]).payload(b"abcd"),
            2 => packet.icmp6_echo_request(ports[0], 1),
            3 => packet.icmp6(Icmp6Repr { kind: 129, code: 0, rest: u32::from(ports[0]) << 16 }),
            _ => packet.protocol(47).payload(&[0; 12]),
        };
        let l3 = packet.build();
        let error = Packet::new().ipv6(to, from).icmp6(Icmp6Repr::hop_limit_exceeded());
        for l3 in [&l3, &extended(&l3, &[(60, &OPTIONS)]), &error.payload(&l3).build()] {
            let mut batch = Batch::default();
            batch.add_ipv6(zone, l3, l3.len(), Checks::ALL);
            let hash = batch.owner_hash(0);
            prop_assert!(hash.is_some());
            prop_assert_eq!(owner::flow(l3).map(|t| t.symmetric_hash32()), hash);
        }
    }

    /// All readers of a packet find the same owner.
    #[test]
    fn owners_are_those_of_frames(
        ends in any::<[u32; 2]>(), ports in any::<[u16; 2]>(), kind in 0u8..6, zone: u16,
    ) {
        let [from, to] = ends.map(Ipv4Addr::from_bits);
        let ports = ports.map(|port| port.max(1));
        let packet = Packet::new().ipv4(from, to);
        let packet = match kind {
            0 => packet.tcp(ports[0], ports[1]).payload(b"abcd"),
            1 => packet.udp(ports[0], ports[1]).payload(b"abcd"),
            2 => packet.icmp_echo_request(ports[0], 1),
            3 => packet.icmp_echo_reply(ports[0], 1),
            4 => packet.protocol(47).payload(&[0; 12]),
            _ => packet.udp(ports[0], ports[1]).payload(b"abcd").fragment(0, true),
        };
        let l3 = packet.build();
        let error = Packet::new().ipv4(to, from).icmp(IcmpRepr::ttl_exceeded()).payload(&l3);
        for l3 in [&l3, &error.build()] {
            let mut batch = Batch::default();
            batch.add_ipv4(zone, l3, l3.len(), Checks::ALL);
            let hash = batch.owner_hash(0);
            prop_assert!(hash.is_some());
            prop_assert_eq!(owner::flow(l3).map(|t| t.symmetric_hash32()), hash);
        }
    }
}
