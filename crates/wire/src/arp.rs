//! ARP for IPv4 over Ethernet (RFC 826), with the probes and announcements of RFC 5227.

use core::net::Ipv4Addr;

use crate::bytes::{array, be16, header, put, room};
use crate::ethernet::{MacAddr, ethertype};
use crate::{Result, WireError};

/// Bytes in a packet.
pub const PACKET_LEN: usize = 28;
/// The hardware type of Ethernet.
pub const HARDWARE_ETHERNET: u16 = 1;

const HTYPE: usize = 0;
const PTYPE: usize = 2;
const HLEN: usize = 4;
const PLEN: usize = 5;
const OP: usize = 6;
const SHA: usize = 8;
const SPA: usize = 14;
const THA: usize = 18;
const TPA: usize = 24;
const WHAT: &str = "ARP packet";

/// Operation of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Request: asks for the target's Ethernet address.
    Request,
    /// Reply: carries the sender's Ethernet address.
    Reply,
    /// Another operation (reverse and inverse ARP).
    Other(u16),
}

impl Operation {
    /// The number on the wire.
    pub const fn number(self) -> u16 {
        match self {
            Self::Request => 1,
            Self::Reply => 2,
            Self::Other(n) => n,
        }
    }
}

impl From<u16> for Operation {
    fn from(n: u16) -> Self {
        match n {
            1 => Self::Request,
            2 => Self::Reply,
            n => Self::Other(n),
        }
    }
}

/// An ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug)]
pub struct ArpView<'a> {
    packet: &'a [u8; PACKET_LEN],
}

impl<'a> ArpView<'a> {
    /// Parses the packet at the start of `data`; Ethernet padding may follow it.
    ///
    /// # Errors
    /// `Truncated` below 28 bytes; `BadField` unless it is for IPv4 over Ethernet.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let (packet, _) = header::<PACKET_LEN>(data, WHAT)?;
        let field = |what, found| Err(WireError::BadField { what, found });
        match (be16(packet, HTYPE), be16(packet, PTYPE), be16(packet, HLEN)) {
            (HARDWARE_ETHERNET, ethertype::IPV4, 0x0604) => Ok(Self { packet }),
            (HARDWARE_ETHERNET, ethertype::IPV4, n) => field("ARP address sizes", n.into()),
            (HARDWARE_ETHERNET, n, _) => field("ARP protocol type", n.into()),
            (n, _, _) => field("ARP hardware type", n.into()),
        }
    }

    /// The operation.
    #[inline]
    pub fn operation(&self) -> Operation {
        be16(self.packet, OP).into()
    }

    /// The sender's Ethernet address.
    #[inline]
    pub fn sender_mac(&self) -> MacAddr {
        MacAddr(array(self.packet, SHA))
    }

    /// The sender's IPv4 address.
    #[inline]
    pub fn sender_ip(&self) -> Ipv4Addr {
        array::<4, _>(self.packet, SPA).into()
    }

    /// The target's Ethernet address; requests leave it zero.
    #[inline]
    pub fn target_mac(&self) -> MacAddr {
        MacAddr(array(self.packet, THA))
    }

    /// The target's IPv4 address.
    #[inline]
    pub fn target_ip(&self) -> Ipv4Addr {
        array::<4, _>(self.packet, TPA).into()
    }

    /// True for a gratuitous ARP: an announcement of the sender's own address.
    #[inline]
    pub fn is_gratuitous(&self) -> bool {
        self.sender_ip() == self.target_ip()
    }

    /// True for an address probe, which has no sender address and must not be learned from.
    #[inline]
    pub fn is_probe(&self) -> bool {
        self.operation() == Operation::Request && self.sender_ip().is_unspecified()
    }

    /// The packet's fields.
    pub fn repr(&self) -> ArpRepr {
        ArpRepr {
            operation: self.operation(),
            sender_mac: self.sender_mac(),
            sender_ip: self.sender_ip(),
            target_mac: self.target_mac(),
            target_ip: self.target_ip(),
        }
    }
}

/// The fields of an ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpRepr {
    /// Operation.
    pub operation: Operation,
    /// The sender's Ethernet address.
    pub sender_mac: MacAddr,
    /// The sender's IPv4 address.
    pub sender_ip: Ipv4Addr,
    /// The target's Ethernet address.
    pub target_mac: MacAddr,
    /// The target's IPv4 address.
    pub target_ip: Ipv4Addr,
}

impl ArpRepr {
    /// Returns a request for the Ethernet address of `target_ip`.
    pub const fn request(sender_mac: MacAddr, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Self {
        let target_mac = MacAddr::ZERO;
        Self { operation: Operation::Request, sender_mac, sender_ip, target_mac, target_ip }
    }

    /// Returns the reply to this request: its target address is at `mac`.
    pub const fn reply(&self, mac: MacAddr) -> Self {
        Self {
            operation: Operation::Reply,
            sender_mac: mac,
            sender_ip: self.target_ip,
            target_mac: self.sender_mac,
            target_ip: self.sender_ip,
        }
    }

    /// Writes the packet and returns its length.
    ///
    /// # Errors
    /// `NoRoom` below 28 bytes.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize> {
        let b = room::<PACKET_LEN>(buf, WHAT)?;
        put(b, HTYPE, HARDWARE_ETHERNET.to_be_bytes());
        put(b, PTYPE, ethertype::IPV4.to_be_bytes());
        b[HLEN] = 6;
        b[PLEN] = 4;
        put(b, OP, self.operation.number().to_be_bytes());
        put(b, SHA, self.sender_mac.0);
        put(b, SPA, self.sender_ip.octets());
        put(b, THA, self.target_mac.0);
        put(b, TPA, self.target_ip.octets());
        Ok(PACKET_LEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REQUEST: [u8; 28] = [
        0, 1, 8, 0, 6, 4, 0, 1, 0x02, 0xfe, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
    ];

    #[test]
    fn a_request_and_its_reply() {
        let mac = MacAddr::new(0x02, 0xfe, 0, 0, 0, 1);
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let view = ArpView::parse(&REQUEST).unwrap();
        assert_eq!(view.repr(), ArpRepr::request(mac, a, b));
        assert!(!view.is_gratuitous() && !view.is_probe());
        let other = MacAddr::new(2, 0, 0, 0, 0, 9);
        let reply = view.repr().reply(other);
        assert_eq!((reply.sender_mac, reply.sender_ip), (other, b));
        assert_eq!((reply.target_mac, reply.target_ip), (mac, a));
    }

    #[test]
    fn other_hardware_protocols_and_sizes_are_named() {
        for (at, what) in [(1, "hardware"), (3, "protocol"), (4, "sizes"), (5, "sizes")] {
            let mut packet = REQUEST;
            packet[at] = 9;
            let Err(WireError::BadField { what: got, .. }) = ArpView::parse(&packet) else {
                panic!("accepted a change at byte {at}");
            };
            assert!(got.contains(what), "{got}");
        }
        assert!(ArpView::parse(&REQUEST[..27]).is_err());
    }

    proptest! {
        #[test]
        fn emitted_packets_parse_back(op: u16, macs: [[u8; 6]; 2], ips: [u32; 2]) {
            let repr = ArpRepr {
                operation: op.into(),
                sender_mac: MacAddr(macs[0]),
                sender_ip: ips[0].into(),
                target_mac: MacAddr(macs[1]),
                target_ip: ips[1].into(),
            };
            let mut buf = [0; PACKET_LEN];
            repr.emit(&mut buf).unwrap();
            prop_assert_eq!(ArpView::parse(&buf).unwrap().repr(), repr);
        }

        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = ArpView::parse(&data);
        }
    }
}
