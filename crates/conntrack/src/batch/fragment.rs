//! Fragments of datagrams.

use thalweg_wire::bytes::be16;
use thalweg_wire::ipv4::{Ipv4View, flag as fragment};
use thalweg_wire::ipv6::Ipv6View;

use super::ends::{Ends, V6, addresses};
use crate::tuple::{Key, last_word};
use crate::{IPV4, IPV6};

/// A fragment of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<const W: usize> {
    /// Key of the datagram in its zone. No connection has such a key.
    pub key: Key<W>,
    /// Offsets of the start and the end of its data in the datagram.
    pub data: (usize, usize),
}

/// Lowest byte of a fragment's key: within a zone, and regardless of the zone.
const IN_ZONE: u64 = 1;
const ANYWHERE: u64 = 2;

impl Fragment<IPV4> {
    /// Reads the packet that starts with IPv4 header `l3`; `None` if it is not a fragment.
    pub fn read(zone: u16, l3: &[u8]) -> Option<Fragment<IPV4>> {
        let ip = Ipv4View::parse_prefix(l3).ok().filter(Ipv4View::is_fragment)?;
        let last = last_word(ip.id(), 0, zone, ip.protocol()) | IN_ZONE;
        let from = ip.fragment_offset();
        let bytes = usize::from(ip.total_len()).saturating_sub(ip.header_len());
        Some(Fragment { key: [addresses(&ip), last], data: (from, from + bytes) })
    }
}

impl Fragment<IPV6> {
    /// Reads the packet that starts with IPv6 header `l3`; `None` if it is not a fragment. The
    /// protocol is not part of the key (RFC 8200 section 4.5).
    pub fn read(zone: u16, l3: &[u8]) -> Option<Fragment<IPV6>> {
        let ip = Ipv6View::parse_prefix(l3).ok()?;
        let behind = ip.transport().ok()?;
        let part = behind.fragment.filter(|fragment| !fragment.is_atomic())?;
        let last = u64::from(part.id) << 32 | u64::from(zone) << 16 | IN_ZONE;
        let bytes = usize::from(ip.payload_len()).saturating_sub(behind.unfragmented);
        let key = V6 { src: ip.src().to_bits(), dst: ip.dst().to_bits() }.key(last);
        Some(Fragment { key, data: (part.offset, part.offset + bytes) })
    }
}

impl<const W: usize> Fragment<W> {
    /// Returns whether it is the first fragment.
    pub fn is_first(&self) -> bool {
        self.data.0 == 0
    }

    /// Key of the datagram, regardless of the zone.
    pub fn anywhere(&self) -> Key<W> {
        let mut key = self.key;
        key[W - 1] = key[W - 1] & !(0xffff << 16 | 0xff) | ANYWHERE;
        key
    }
}

/// Returns whether a packet with a complete header is a fragment.
pub(super) fn is_fragment(l3: &[u8]) -> bool {
    let parts = fragment::MORE_FRAGMENTS | fragment::OFFSET_MASK;
    l3.len() >= 20 && be16(l3, 6) & parts != 0
}
