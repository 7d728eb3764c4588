//! The text of traces, line by line.

use core::net::Ipv4Addr;
use proptest::prelude::*;
use std::string::{String, ToString};
use std::vec;

use super::*;
use crate::MacAddr;
use crate::arp::ArpRepr;
use crate::build::Packet;
use crate::icmpv4::{IcmpRepr, emit_error};

const A: MacAddr = MacAddr::new(2, 0xfe, 0, 0, 0, 1);
const B: MacAddr = MacAddr::new(2, 0xfe, 0, 0, 0, 2);
const IP_A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const IP_B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

#[track_caller]
fn shows(frame: &[u8], want: &str) {
    assert_eq!(Frame(frame).to_string(), want);
}

#[test]
fn a_ping() {
    let p = Packet::new().ether(A, B).ipv4(IP_A, IP_B).id(1).dont_fragment();
    let frame = p.icmp_echo_request(7, 1).payload_len(56).build();
    shows(
        &frame,
        "IP4: 02:fe:00:00:00:01 -> 02:fe:00:00:00:02\n\
         ICMP: 10.0.0.1 -> 10.0.0.2\n  \
           tos 0x00, ttl 64, length 84, checksum 0x26a6 dscp CS0 ecn NON_ECN\n  \
           fragment id 0x0001, flags DONT_FRAGMENT\n\
         ICMP echo_request checksum 0xf7f7 id 7\n",
    );
    let mut text = String::new();
    ip4(&frame[14..], &mut text, 2).unwrap();
    assert!(text.starts_with("  ICMP: 10.0.0.1 -> 10.0.0.2\n    tos 0x00, ttl 64"), "{text}");
}

#[test]
fn a_tagged_udp_packet_with_a_wrong_checksum() {
    let p = Packet::new().ether(A, B).dot1ad(100).tag(Tag { tpid: 0x8100, tci: 0xa00a });
    let mut frame = p.ipv4(IP_A, IP_B).tos(0xb9).udp(1234, 4321).no_checksum().build();
    frame[32] = 0;
    shows(
        &frame,
        "IP4: 02:fe:00:00:00:01 -> 02:fe:00:00:00:02 802.1ad vlan 100 802.1q vlan 10 priority 5\n\
         UDP: 10.0.0.1 -> 10.0.0.2\n  \
           tos 0xb9, ttl 64, length 28, checksum 0x0016 (should be 0x6616) dscp EF ecn ECT_1\n  \
           fragment id 0x0000\n\
         UDP: 1234 -> 4321\n  \
           length 8, checksum 0x0000\n",
    );
}

#[test]
fn a_syn() {
    let p = Packet::new().ipv4(IP_A, IP_B).tcp(1, 2).seq(0xd26c_e551).flags(tcp::flag::SYN);
    let packet = p.window(64240).tcp_options(&[1; 20]).build();
    let text = Ip(&packet).to_string();
    let checksum = TcpView::parse(&packet[20..]).unwrap().checksum();
    let want = std::format!(
        "TCP: 1 -> 2\n  seq. 0xd26ce551 ack 0x00000000\n  \
         flags 0x02 SYN, tcp header: 40 bytes\n  window 64240, checksum {checksum:#06x}\n"
    );
    assert!(text.ends_with(&want), "{text}");
    let cut = Ip(&packet[..45]).to_string();
    assert!(cut.contains("flags 0x02 SYN, tcp header: 40 bytes"), "{cut}");
}

#[test]
fn arp_requests_and_replies() {
    let frame = Packet::arp_request(A, IP_A, IP_B).build();
    shows(
        &frame,
        "ARP: 02:fe:00:00:00:01 -> ff:ff:ff:ff:ff:ff\n\
         request, type ethernet/IP4, address size 6/4\n\
         02:fe:00:00:00:01/10.0.0.1 -> 00:00:00:00:00:00/10.0.0.2\n",
    );
    let frame = Packet::arp_reply(B, &ArpRepr::request(A, IP_A, IP_B)).build();
    let text = Frame(&frame).to_string();
    assert!(text.contains("\nreply, type ethernet/IP4"), "{text}");
}

#[test]
fn an_error_shows_the_quoted_packet() {
    let original = Packet::new().ipv4(IP_A, IP_B).ttl(1).udp(9, 33434).build();
    let mut buf = vec![0; 100];
    let view = ipv4::check(&original).unwrap();
    let n = emit_error(IcmpRepr::ttl_exceeded(), IP_B, &view, &mut buf).unwrap();
    let text = Ip(&buf[..n]).to_string();
    assert!(text.contains("ICMP time_exceeded ttl_exceeded_in_transit checksum 0x"), "{text}");
    assert!(text.contains("\n  UDP: 10.0.0.1 -> 10.0.0.2\n    tos 0x00, ttl 1,"), "{text}");
    assert!(text.contains("\n  UDP: 9 -> 33434\n"), "{text}");
}

#[test]
fn ipv6_and_neighbor_discovery() {
    let (a, b) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let packet = Packet::new().ipv6(a, b).icmp6_echo_request(7, 1).payload_len(56).build();
    let text = Ip(&packet).to_string();
    let want = "ICMP6: 2001:db8::1 -> 2001:db8::2\n  \
                tos 0x00, flow label 0x0, hop limit 64, payload length 64\n\
                ICMP echo_request checksum 0x";
    assert!(text.starts_with(want), "{text}");
    let mut message = [0; nd::MESSAGE_LEN];
    nd::emit_solicitation(&a, &nd::solicited_node(b), b, A, &mut message).unwrap();
    let mut text = String::new();
    icmp6(&message, &mut text, 0).unwrap();
    assert!(text.starts_with("ICMP neighbor_solicitation checksum 0x"), "{text}");
    assert!(text.contains("\n  target address 2001:db8::2\n"), "{text}");
}

#[test]
fn tunnels_are_entered() {
    let p = Packet::new().ether(A, B).mpls(16).mpls(17).ipv4(IP_A, IP_B);
    let p = p.udp(1, udp::port::VXLAN).vxlan(42).ether(B, A).ipv4(IP_B, IP_A);
    let text = Frame(&p.gre().gre_key(9).ipv4(IP_A, IP_B).udp(5, 6).build()).to_string();
    for want in [
        "MPLS: 02:fe:00:00:00:01 -> 02:fe:00:00:00:02\n",
        "MPLS: label 16 exp 0 eos 0 ttl 64\n",
        "MPLS: label 17 exp 0 eos 1 ttl 64\n",
        "VXLAN: vni 42\n  IP4: 02:fe:00:00:00:02 -> 02:fe:00:00:00:01\n",
        "  GRE: IP4 key 0x9\n    UDP: 10.0.0.1 -> 10.0.0.2\n",
        "    UDP: 5 -> 6\n",
    ] {
        assert!(text.contains(want), "{want:?} in {text}");
    }
}

#[test]
fn fragments_and_bad_headers() {
    let p = Packet::new().ipv4(IP_A, IP_B).id(9).protocol(17).fragment(1480, true);
    let mut packet = p.payload_len(8).build();
    let text = Ip(&packet).to_string();
    assert!(text.ends_with("fragment id 0x0009 offset 1480, flags MORE_FRAGMENTS\n"), "{text}");
    packet[0] = 0x53;
    let text = Ip(&packet).to_string();
    assert!(text.contains("version 5, header length 12\n"), "{text}");
    assert_eq!(Ip(&packet[..3]).to_string(), "IPv4 header: truncated, needs 20 bytes and has 3\n");
    assert_eq!(
        Frame(&[1, 2]).to_string(),
        "Ethernet header: truncated, needs 14 bytes and has 2\n"
    );
}

#[test]
fn spanning_tree_is_llc() {
    let mut frame = Packet::new().ether(A, B).ethertype(0x26).payload_len(46).build();
    frame[14..17].copy_from_slice(&[0x42, 0x42, 3]);
    shows(&frame, "0x0026: 02:fe:00:00:00:01 -> 02:fe:00:00:00:02\nLLC bpdu -> bpdu\n");
}

#[test]
fn hex_in_two_forms() {
    let data: vec::Vec<u8> = (0x30..0x54).collect();
    let mut text = String::new();
    hex(&data, &mut text, 2).unwrap();
    let first = "  00000000: 303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f\n";
    assert_eq!(text, std::format!("{first}  00000020: 50515253\n"));
    assert_eq!(
        Hexdump(&data[..17]).to_string(),
        "0000: 30 31 32 33 34 35 36 37  38 39 3a 3b 3c 3d 3e 3f  0123456789:;<=>?\n\
         0010: 40                                                @\n"
    );
}

proptest! {
    #[test]
    fn any_bytes_can_be_shown(
        mut data in proptest::collection::vec(any::<u8>(), 0..160),
        kind in prop_oneof![
            Just(0x800u16), Just(0x86dd), Just(0x806), Just(0x8847), Just(0x8100), Just(0x6558),
            Just(30), any::<u16>()
        ],
        version in prop_oneof![Just(0x45u8), Just(0x46), Just(0x60), any::<u8>()],
        next in prop_oneof![Just(1u8), Just(6), Just(17), Just(47), Just(58), Just(44), Just(4)],
    ) {
        if data.len() > 24 {
            data[12..14].copy_from_slice(&kind.to_be_bytes());
            data[14] = version;
            data[20] = next;
            data[23] = next;
        }
        let text = Frame(&data).to_string();
        prop_assert!(text.is_empty() || text.ends_with('\n'));
        for f in [arp, ip4, ip6, icmp4, icmp6, udp, tcp, mpls, hex, hexdump] {
            f(&data, &mut String::new(), 2).unwrap();
        }
    }

    #[test]
    fn damaged_packets_can_be_shown(
        noise in proptest::collection::vec((0usize..120, any::<u8>()), 0..8),
        len in 0usize..200,
    ) {
        let p = Packet::new().ether(A, B).vlan(5).ipv4(IP_A, IP_B).udp(1, udp::port::VXLAN);
        let p = p.vxlan(42).ether(B, A).ipv4(IP_B, IP_A).gre().ipv4(IP_A, IP_B).tcp(1, 2);
        let mut frame = p.payload_len(40).build();
        for (at, byte) in noise {
            frame[at] = byte;
        }
        frame.truncate(len);
        prop_assert!(Frame(&frame).to_string().ends_with('\n'));
    }
}
