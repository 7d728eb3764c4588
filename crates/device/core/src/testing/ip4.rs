//! IPv4 packets of hosts at test interfaces.

use super::{host_mac, our_mac};
use std::net::Ipv4Addr;
use thalweg_tables::Ipv4Prefix;
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv4::IcmpView;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv4::{self, Ipv4View};

const ETHERTYPE: u16 = 0x0800;

/// 10.0.n.host
pub fn ip(n: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, n, host)
}

/// A prefix by its text.
pub fn prefix(text: &str) -> Ipv4Prefix {
    let (addr, len) = text.split_once('/').expect("a prefix");
    let addr: Ipv4Addr = addr.parse().expect("an address");
    Ipv4Prefix::new(addr.to_bits(), len.parse().expect("a length")).expect("a length")
}

/// An Ethernet frame from a host to `testN`.
pub fn framed(n: u8, host: u8, packet: &[u8]) -> Vec<u8> {
    super::framed(our_mac(n), host_mac(n, host), ETHERTYPE, packet)
}

/// A UDP packet of `len` data bytes.
pub fn udp(src: Ipv4Addr, dst: Ipv4Addr, len: usize) -> Packet {
    Packet::new().ipv4(src, dst).udp(1024, 53).payload(&super::data(len))
}

/// The packet in a frame from `testN` to a host, whose headers are sound.
pub fn sound(n: u8, host: u8, frame: &[u8]) -> Ipv4View<'_> {
    ipv4::check(super::packet(n, host, ETHERTYPE, frame)).expect("a sound header")
}

/// An ICMP error to a host.
pub struct IcmpError {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// MTU, if it carries one.
    pub mtu: Option<u16>,
    /// Bytes after the header.
    pub quoted: Vec<u8>,
}

/// The ICMP error in a frame from `testN` to a host; addresses and checksums are right.
pub fn icmp_error(n: u8, host: u8, frame: &[u8]) -> IcmpError {
    let ip = sound(n, host, frame);
    assert_eq!(ip.protocol(), protocol::ICMP);
    let icmp = IcmpView::parse(ip.payload()).expect("icmp");
    assert!(icmp.checksum_ok());
    IcmpError {
        src: ip.src(),
        dst: ip.dst(),
        kind: icmp.kind(),
        code: icmp.code(),
        mtu: icmp.mtu(),
        quoted: icmp.payload().to_vec(),
    }
}
