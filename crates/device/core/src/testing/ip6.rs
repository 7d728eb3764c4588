//! IPv6 packets of hosts at test interfaces.

use super::{host_mac, our_mac};
use std::net::Ipv6Addr;
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv6::{Icmp6View, fill_checksum};
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{Ipv6Repr, Ipv6View};

const ETHERTYPE: u16 = 0x86dd;

/// An address by its text.
pub fn at(text: &str) -> Ipv6Addr {
    text.parse().expect("an address")
}

/// 2001:db8:0:n::host
pub fn ip(n: u8, host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, n.into(), 0, 0, 0, host.into())
}

/// The link-local address of a host.
pub fn link(host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0x99, host.into())
}

/// An Ethernet frame from a host to `testN`.
pub fn framed(n: u8, host: u8, packet: &[u8]) -> Vec<u8> {
    framed_to(our_mac(n), host_mac(n, host), packet)
}

/// An Ethernet frame.
pub fn framed_to(to: MacAddr, from: MacAddr, packet: &[u8]) -> Vec<u8> {
    super::framed(to, from, ETHERTYPE, packet)
}

/// A UDP packet of `len` data bytes.
pub fn udp(src: Ipv6Addr, dst: Ipv6Addr, len: usize) -> Packet {
    Packet::new().ipv6(src, dst).udp(1024, 53).payload(&super::data(len))
}

/// The packet in a frame from `testN` to a host.
pub fn sound(n: u8, host: u8, frame: &[u8]) -> Ipv6View<'_> {
    Ipv6View::parse(super::packet(n, host, ETHERTYPE, frame)).expect("a sound header")
}

/// The ICMPv6 message in a frame from `testN` to a host, and its source; the checksum is right.
pub fn icmp(n: u8, host: u8, frame: &[u8]) -> (Ipv6Addr, Icmp6View<'_>) {
    let ip = sound(n, host, frame);
    assert_eq!(ip.next_header(), protocol::ICMPV6);
    let icmp = Icmp6View::parse(ip.payload()).expect("icmp");
    assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
    (ip.src(), icmp)
}

/// A packet with an ICMPv6 message (its checksum is set) behind hop-by-hop `options`, which may be
/// empty.
pub fn icmp_packet(
    (src, dst): (Ipv6Addr, Ipv6Addr),
    hops: u8,
    options: &[u8],
    message: &[u8],
) -> Vec<u8> {
    let mut message = message.to_vec();
    fill_checksum(&src, &dst, &mut message).expect("a message");
    let next = if options.is_empty() { protocol::ICMPV6 } else { 0 };
    let header = Ipv6Repr::new(src, dst, next, (options.len() + message.len()) as u16);
    let mut packet = vec![0; 40];
    Ipv6Repr { hop_limit: hops, ..header }.emit(&mut packet).expect("a header");
    [&packet, options, &message].concat()
}

/// A frame from a host to a group that a packet is for.
pub fn to_group(from: MacAddr, packet: &[u8]) -> Vec<u8> {
    let dst = Ipv6View::parse(packet).expect("a sound header").dst();
    framed_to(MacAddr::from_ipv6_multicast(dst), from, packet)
}
