//! Neighbour discovery frames sent by the router.

use std::net::Ipv6Addr;
use thalweg_wire::MacAddr;
use thalweg_wire::ethernet::{EthernetRepr, HEADER_LEN, ethertype};
use thalweg_wire::icmpv6::{fill_checksum, kind};
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{self, Ipv6Repr};
use thalweg_wire::nd::{self, HOP_LIMIT, MESSAGE_LEN, flag};

/// Length of a solicitation or advertisement in bytes, with its Ethernet header.
pub const FRAME_LEN: usize = HEADER_LEN + ipv6::HEADER_LEN + MESSAGE_LEN;

/// Length of a probe: a solicitation without an option.
const PROBE_LEN: usize = HEADER_LEN + ipv6::HEADER_LEN + 24;

/// The group of all nodes of the link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A solicitation of `target` from `ip` at `mac`: to the target's group, or to the MAC address at
/// which it was last heard (RFC 4861 section 7.2.2).
pub fn solicitation(
    mac: MacAddr,
    ip: Ipv6Addr,
    target: Ipv6Addr,
    to: Option<MacAddr>,
) -> [u8; FRAME_LEN] {
    let dst = if to.is_some() { target } else { nd::solicited_node(target) };
    let dst_mac = to.unwrap_or_else(|| MacAddr::from_ipv6_multicast(dst));
    frame(dst_mac, mac, ip, dst, |message| nd::emit_solicitation(&ip, &dst, target, mac, message))
}

/// A solicitation of an address that is still being tested, from no address (RFC 4862 section
/// 5.4.2).
pub(crate) fn probe(mac: MacAddr, target: Ipv6Addr) -> [u8; PROBE_LEN] {
    let (src, dst) = (Ipv6Addr::UNSPECIFIED, nd::solicited_node(target));
    let mut out = [0; PROBE_LEN];
    let ether = EthernetRepr {
        dst: MacAddr::from_ipv6_multicast(dst),
        src: mac,
        ethertype: ethertype::IPV6,
    };
    let length = (PROBE_LEN - HEADER_LEN - ipv6::HEADER_LEN) as u16;
    let header =
        Ipv6Repr { hop_limit: HOP_LIMIT, ..Ipv6Repr::new(src, dst, protocol::ICMPV6, length) };
    // All lengths are constant; the array has room for them.
    let _ = ether.emit(&mut out);
    let _ = header.emit(&mut out[HEADER_LEN..]);
    let message = &mut out[HEADER_LEN + ipv6::HEADER_LEN..];
    message[0] = kind::NEIGHBOR_SOLICITATION;
    message[8..].copy_from_slice(&target.octets());
    let _ = fill_checksum(&src, &dst, message);
    out
}

/// An advertisement of `target` at `mac`.
#[derive(Clone, Copy, Debug)]
pub struct Advertisement {
    /// MAC address of the target, and of the sender.
    pub mac: MacAddr,
    /// The address that is advertised.
    pub target: Ipv6Addr,
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Destination MAC address.
    pub dst_mac: MacAddr,
    /// Flags (see [`flag`]).
    pub flags: u32,
}

impl Advertisement {
    /// One that nobody has asked for (RFC 4861 section 7.2.6).
    pub fn unsolicited(mac: MacAddr, ip: Ipv6Addr) -> Advertisement {
        Advertisement {
            mac,
            target: ip,
            src: ip,
            dst: ALL_NODES,
            dst_mac: MacAddr::from_ipv6_multicast(ALL_NODES),
            flags: flag::OVERRIDE,
        }
    }

    /// Builds the frame.
    pub fn frame(self) -> [u8; FRAME_LEN] {
        let Advertisement { mac, target, src, dst, dst_mac, flags } = self;
        frame(dst_mac, mac, src, dst, |message| {
            nd::emit_advertisement(&src, &dst, flags, target, mac, message)
        })
    }
}

fn frame(
    dst_mac: MacAddr,
    mac: MacAddr,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    emit: impl Fn(&mut [u8]) -> thalweg_wire::Result<usize>,
) -> [u8; FRAME_LEN] {
    let mut out = [0; FRAME_LEN];
    let ether = EthernetRepr { dst: dst_mac, src: mac, ethertype: ethertype::IPV6 };
    let header = Ipv6Repr {
        hop_limit: HOP_LIMIT,
        ..Ipv6Repr::new(src, dst, protocol::ICMPV6, MESSAGE_LEN as u16)
    };
    // All lengths are constant; the array has room for them.
    let _ = ether.emit(&mut out);
    let _ = header.emit(&mut out[HEADER_LEN..]);
    let _ = emit(&mut out[HEADER_LEN + ipv6::HEADER_LEN..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::icmpv6::Icmp6View;
    use thalweg_wire::ipv6::Ipv6View;
    use thalweg_wire::nd::Message;

    #[test]
    fn frames_are_whole() {
        let (a, b): (Ipv6Addr, Ipv6Addr) =
            ("fe80::1".parse().unwrap(), "2001:db8::aa:bbcc".parse().unwrap());
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let all = solicitation(mac, a, b, None);
        assert_eq!(all[..6], [0x33, 0x33, 0xff, 0xaa, 0xbb, 0xcc]);
        let ip = Ipv6View::parse(&all[14..]).unwrap();
        assert_eq!((ip.hop_limit(), ip.dst()), (255, nd::solicited_node(b)));
        let icmp = Icmp6View::parse(ip.payload()).unwrap();
        assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
        let Some(Ok(Message::NeighborSolicitation { target, .. })) = Message::parse(&icmp) else {
            panic!("{icmp:?}");
        };
        assert_eq!(target, b);
        let one = solicitation(mac, a, b, Some(MacAddr([2, 0, 0, 0, 0, 9])));
        assert_eq!(one[..6], [2, 0, 0, 0, 0, 9]);
        assert_eq!(Ipv6View::parse(&one[14..]).unwrap().dst(), b);
        let frame = Advertisement::unsolicited(mac, b).frame();
        let ip = Ipv6View::parse(&frame[14..]).unwrap();
        let icmp = Icmp6View::parse(ip.payload()).unwrap();
        assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
        assert_eq!(icmp.rest(), flag::OVERRIDE);
    }
}
