//! The link header of IPv4 packets, from their adjacency, and what goes before it: TTL and length.

use std::fmt::Write;
use thalweg_buffer::{Flags, GsoKind, PktMut};
use thalweg_feat_ip::link::Packets;
use thalweg_fib::LinkType;
use thalweg_wire::checksum;

/// IPv4 packets.
pub struct Ipv4Packets;

/// Writes link headers.
pub type Link = thalweg_feat_ip::link::Link<Ipv4Packets>;

impl Packets for Ipv4Packets {
    type Address = u32;

    const LINK: LinkType = LinkType::Ip4;

    #[inline(always)]
    fn decrement(header: &mut [u8]) -> bool {
        decrement_ttl(header)
    }

    fn describe(packet: &[u8], out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(packet, out, 0);
    }
}

/// Treatment of a packet above the MTU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Length {
    /// The segments of a GSO packet suit the MTU.
    Suits,
    /// The packet is fragmented.
    Fragment,
    /// The packet must not be fragmented.
    Refused,
}

/// Length of the headers repeated in each segment of a GSO packet. The device's value is only a
/// hint.
fn segment_headers(packet: &[u8], gso: GsoKind) -> usize {
    let ip = usize::from(packet.first().map_or(0, |b| b & 15)) * 4;
    match gso {
        GsoKind::Udp => ip + 8,
        _ => ip + usize::from(packet.get(ip + 12).map_or(0, |b| b >> 4)) * 4,
    }
}

/// Examines a packet that exceeds the interface's MTU.
#[cold]
pub(crate) fn too_long(p: &PktMut<'_>, mtu: u16) -> Length {
    if p.flags().contains(Flags::OFFLOAD) {
        let o = p.meta().offload;
        // The sender has sized the segments of a GSO packet.
        if o.gso != GsoKind::None
            && segment_headers(p.data(), o.gso) + usize::from(o.gso_size) <= usize::from(mtu)
        {
            return Length::Suits;
        }
    }
    match p.data().get(6).is_some_and(|b| b & 0x40 != 0) {
        true => Length::Refused,
        false => Length::Fragment,
    }
}

/// Decrements the TTL of an IP header and updates the checksum (RFC 1624); returns false, with
/// nothing done, if it has expired.
#[inline(always)]
pub(crate) fn decrement_ttl(ip: &mut [u8]) -> bool {
    // One load of a word: the compiler turns four single bytes into four loads.
    let Some(word) = ip.get_mut(8..).and_then(<[u8]>::first_chunk_mut) else { return false };
    let old = u32::from_le_bytes(*word);
    if old & 0xfe == 0 {
        return false;
    }
    *word = checksum::ttl_decrement_word(old).to_le_bytes();
    true
}
