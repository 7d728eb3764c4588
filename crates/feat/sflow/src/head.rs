//! The headers of a packet, as far as they are at hand.

use crate::record::{Headers, Tuple};
use std::net::IpAddr;
use thalweg_device::link_header::is_ip;
use thalweg_wire::bytes::get_be16;
use thalweg_wire::ethernet::ethertype;
use thalweg_wire::mpls::Stack;

/// Offset of the EtherType, or of the first tag.
const ETHERTYPE_AT: usize = 12;
const TAG_LEN: usize = 4;

/// Offsets of a packet's headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'h> {
    header: &'h [u8],
    /// The outermost VLAN tag.
    pub(crate) tag: Option<u16>,
    ethertype: u16,
    /// Offset of the network header.
    network: usize,
}

fn word(header: &[u8], at: usize) -> u16 {
    get_be16(header, at).unwrap_or(0)
}

impl<'h> Head<'h> {
    /// Reads the head of a packet that begins with its Ethernet header.
    #[inline]
    pub(crate) fn ethernet(header: &'h [u8]) -> Head<'h> {
        let (mut at, mut tag) = (ETHERTYPE_AT, None);
        while matches!(word(header, at), ethertype::VLAN | ethertype::DOT1AD) {
            tag = tag.or_else(|| get_be16(header, at + 2));
            at += TAG_LEN;
        }
        Head { header, tag, ethertype: word(header, at), network: at + 2 }
    }

    /// Reads the head of a packet that begins with its IP header.
    #[inline]
    pub(crate) fn ip(header: &'h [u8]) -> Head<'h> {
        let ethertype = match header.first().map(|first| first >> 4) {
            Some(4) => ethertype::IPV4,
            Some(6) => ethertype::IPV6,
            _ => 0,
        };
        Head { header, tag: None, ethertype, network: 0 }
    }

    /// Reads the head of a packet that begins with either. `length` counts the whole packet.
    pub(crate) fn either(header: &'h [u8], length: usize) -> Head<'h> {
        if is_ip(header, length) { Head::ip(header) } else { Head::ethernet(header) }
    }

    /// Source and destination.
    pub(crate) fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        let ip = self.header.get(self.network..)?;
        match self.ethertype {
            ethertype::IPV4 => addresses::<4>(ip, 12),
            ethertype::IPV6 => addresses::<16>(ip, 8),
            _ => None,
        }
    }

    /// Label stack entries, the outermost first; none of a packet without labels.
    pub(crate) fn labels(&self) -> Vec<u32> {
        let behind = self.header.get(self.network..).unwrap_or_default();
        let labels = if self.ethertype == ethertype::MPLS { behind } else { &[] };
        Stack::new(labels).map(|entry| entry.0).collect()
    }

    /// Addresses and ports of an IPv4 packet.
    pub(crate) fn tuple(&self) -> Option<Tuple> {
        let ip = self.header.get(self.network..)?;
        if self.ethertype == ethertype::IPV4 { Tuple::of(ip) } else { None }
    }

    /// Returns the headers that may change on the way.
    pub(crate) fn headers(&self) -> Headers {
        Headers { tag: self.tag, tuple: self.tuple() }
    }
}

/// Source and destination that lie one behind the other.
fn addresses<const N: usize>(ip: &[u8], at: usize) -> Option<(IpAddr, IpAddr)>
where
    IpAddr: From<[u8; N]>,
{
    let source = *ip.get(at..)?.first_chunk::<N>()?;
    let destination = *ip.get(at + N..)?.first_chunk::<N>()?;
    Some((source.into(), destination.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(s: &str) -> IpAddr {
        s.parse().unwrap()
    }

    #[test]
    fn headers_are_read_behind_tags() {
        let mut frame = vec![0; 12];
        frame.extend([0x88, 0xa8, 0x20, 0x64, 0x81, 0x00, 0x00, 0x0a, 0x08, 0x00, 0x45]);
        frame.extend([0; 11]);
        frame.extend([192, 0, 2, 1, 198, 51, 100, 7]);
        let head = Head::ethernet(&frame);
        assert_eq!(head.tag, Some(0x2064));
        let addresses = Some((ip("192.0.2.1"), ip("198.51.100.7")));
        assert_eq!(head.addresses(), addresses);
        assert_eq!(head.tuple().map(|t| t.source), Some(0xc000_0201));
        // The same without a link header.
        let bare = Head::ip(&frame[22..]);
        assert_eq!((bare.tag, bare.addresses(), bare.tuple()), (None, addresses, head.tuple()));
        let mut six = vec![0; 12];
        six.extend([0x86, 0xdd, 0x60]);
        six.extend([0; 7]);
        six.extend([1; 16]);
        assert_eq!(Head::ethernet(&six).addresses(), None, "one address only");
        six.extend([2; 16]);
        assert_eq!(Head::ethernet(&six).addresses(), Some(([1; 16].into(), [2; 16].into())));
        assert_eq!(Head::ip(&six[14..]).addresses(), Some(([1; 16].into(), [2; 16].into())));
    }

    #[test]
    fn an_ip_header_is_told_from_an_ethernet_header() {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 8, 0, 0x45, 1, 10, 0, 0, 2];
        packet.extend([0, 80, 0, 81, 0, 8, 0, 0]);
        assert!(is_ip(&packet, 28) && !is_ip(&packet, 42) && !is_ip(&packet[..19], 28));
        let framed = [&[0x45, 0, 0, 1, 2, 3, 2, 0, 0, 0, 0, 1, 8, 0][..], &packet].concat();
        assert!(!is_ip(&framed, 42));
        let ports = Some((80, 81));
        assert_eq!(Head::either(&framed, 42).tuple().map(|t| t.ports), Some(ports));
        assert_eq!(Head::either(&packet, 28).tuple().map(|t| t.ports), Some(ports));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header(
            header in prop::collection::vec(any::<u8>(), 0..256),
            tags: bool,
            length in 0usize..256,
        ) {
            let mut header = header;
            if tags {
                for at in (12..header.len().saturating_sub(4)).step_by(4) {
                    header[at..at + 2].copy_from_slice(&[0x81, 0]);
                }
            }
            for head in [Head::ethernet(&header), Head::ip(&header), Head::either(&header, length)] {
                let _ = (head.addresses(), head.headers(), head.labels());
            }
        }
    }
}
