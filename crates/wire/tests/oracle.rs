//! Comparison with another implementation: what this crate builds, `etherparse` must parse with the
//! same fields and checksums, and the other way round.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{
    Ipv4HeaderSlice, NetSlice, PacketBuilder, SlicedPacket, TcpHeaderSlice, TransportSlice,
};
use proptest::prelude::*;
use thalweg_wire::build::Packet;
use thalweg_wire::flow::five_tuple;
use thalweg_wire::ipv4::{self, Ipv4View};
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::tcp::TcpView;
use thalweg_wire::udp::UdpView;
use thalweg_wire::vlan::VlanId;
use thalweg_wire::vlan::layer2;
use thalweg_wire::{MacAddr, gso};

/// Checks the transport's checksum of a frame as etherparse computes it.
fn judge(frame: &[u8]) {
    let sliced = SlicedPacket::from_ethernet(frame).expect("a readable packet");
    let (net, transport) = (sliced.net.expect("IP"), sliced.transport.expect("a transport"));
    let (found, want) = match (&net, &transport) {
        (NetSlice::Ipv4(ip), TransportSlice::Udp(udp)) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            let h = udp.to_header();
            (h.checksum, h.calc_checksum_ipv4(&header, udp.payload()).unwrap())
        }
        (NetSlice::Ipv4(ip), TransportSlice::Tcp(tcp)) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            let h = tcp.to_header();
            (h.checksum, h.calc_checksum_ipv4(&header, tcp.payload()).unwrap())
        }
        (NetSlice::Ipv6(ip), TransportSlice::Udp(udp)) => {
            let h = udp.to_header();
            let header = ip.header().to_header();
            (h.checksum, h.calc_checksum_ipv6(&header, udp.payload()).unwrap())
        }
        (NetSlice::Ipv6(ip), TransportSlice::Tcp(tcp)) => {
            let h = tcp.to_header();
            let header = ip.header().to_header();
            (h.checksum, h.calc_checksum_ipv6(&header, tcp.payload()).unwrap())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(found, want);
}

fn built(v6: bool, tcp: bool, tag: Option<u16>, ips: [u128; 2], payload: &[u8]) -> Vec<u8> {
    let p = Packet::new().ether(MacAddr::new(2, 0, 0, 0, 0, 1), MacAddr::new(2, 0, 0, 0, 0, 2));
    let p = tag.into_iter().fold(p, Packet::vlan);
    let [src, dst] = ips;
    let p = match v6 {
        true => p.ipv6(src.into(), dst.into()),
        false => p.ipv4((src as u32).into(), (dst as u32).into()).ip_options(&[148, 4, 0, 0]),
    };
    let p = if tcp { p.tcp(1, 2).tcp_options(&[2, 4, 5, 0xb4]) } else { p.udp(3, 4) };
    p.payload(payload).build()
}

proptest! {
    #[test]
    fn etherparse_reads_what_we_build(
        v6: bool, tcp: bool, tag in proptest::option::of(0u16..4095), ips: [u128; 2],
        payload in proptest::collection::vec(any::<u8>(), 0..200), size in 1usize..300,
    ) {
        let frame = built(v6, tcp, tag, ips, &payload);
        judge(&frame);
        gso::segment(&frame, size, |h, p| judge(&[h, p].concat())).unwrap();
    }

    #[test]
    fn we_read_what_etherparse_builds(
        src: [u8; 4], dst: [u8; 4], wide: [[u8; 16]; 2], ttl in 1u8.., ports: [u16; 2],
        numbers: (u32, u32, u16), payload in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let (seq, ack, window) = numbers;
        let ether = || PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let mut frame = Vec::new();
        let b = ether().single_vlan(10.try_into().unwrap()).ipv4(src, dst, ttl);
        b.tcp(ports[0], ports[1], seq, window).ack(ack).syn().write(&mut frame, &payload).unwrap();
        let l2 = layer2(&frame).unwrap();
        prop_assert_eq!(l2.tags[0].map(|t| t.id()), Some(VlanId(10)));
        let ip = ipv4::check(l2.payload).unwrap();
        prop_assert_eq!((ip.src(), ip.dst()), (Ipv4Addr::from(src), Ipv4Addr::from(dst)));
        let tcp = TcpView::parse(ip.payload()).unwrap();
        prop_assert!(tcp.checksum_ok(ip.pseudo_header()));
        prop_assert_eq!((tcp.seq(), tcp.ack(), tcp.window()), (seq, ack, window));
        prop_assert_eq!((tcp.flags(), tcp.payload()), (0x12, &payload[..]));

        frame.clear();
        let b = ether().ipv6(wide[0], wide[1], ttl).udp(ports[0], ports[1]);
        b.write(&mut frame, &payload).unwrap();
        let ip = Ipv6View::parse(layer2(&frame).unwrap().payload).unwrap();
        prop_assert_eq!((ip.src(), ip.hop_limit()), (Ipv6Addr::from(wide[0]), ttl));
        let udp = UdpView::parse(ip.payload()).unwrap();
        prop_assert!(udp.checksum_ok(ip.pseudo_header(17, ip.payload_len().into())));
        prop_assert_eq!(udp.payload(), &payload[..]);
        let t = five_tuple(layer2(&frame).unwrap().payload).unwrap();
        prop_assert_eq!((t.src_port, t.dst_port), (ports[0], ports[1]));
    }

    #[test]
    fn damaged_headers_are_judged_alike(
        noise in proptest::collection::vec((0usize..44, any::<u8>()), 0..4), len in 0usize..80,
    ) {
        let mut packet = built(false, true, None, [1 << 24, 2 << 24], &[7; 20]).split_off(14);
        for (at, byte) in noise {
            packet[at] = byte;
        }
        packet.truncate(len);
        let ours = Ipv4View::parse_prefix(&packet);
        let theirs = Ipv4HeaderSlice::from_slice(&packet);
        if let (Ok(a), Ok(b)) = (&ours, &theirs) {
            prop_assert_eq!((a.src(), a.dst()), (b.source_addr(), b.destination_addr()));
            prop_assert_eq!((a.ttl(), a.id()), (b.ttl(), b.identification()));
            prop_assert_eq!(a.total_len(), b.total_len());
            prop_assert_eq!(a.dont_fragment(), b.dont_fragment());
            prop_assert_eq!(a.more_fragments(), b.more_fragments());
            prop_assert_eq!(a.fragment_offset(), usize::from(b.fragments_offset().value()) * 8);
            prop_assert_eq!(a.options_bytes(), b.options());
            let sum = b.to_header().calc_header_checksum();
            // etherparse drops the reserved flag when it makes a header of a slice.
            let reserved = a.fragment_word() & ipv4::flag::RESERVED != 0;
            prop_assert!(reserved || a.computed_checksum() == sum);
            let tcp = TcpHeaderSlice::from_slice(a.payload());
            prop_assert_eq!(TcpView::parse(a.payload()).is_ok(), tcp.is_ok());
        }
        // etherparse leaves the total length to a later stage; the rest must agree.
        let length = ours.as_ref().err().is_some_and(|e| e.to_string().contains("length field"));
        prop_assert!(ours.is_ok() == theirs.is_ok() || length, "{:?} {:?}", ours, theirs);
    }
}
