//! The link header of IPv6 packets, from their adjacency, and what goes before it: hop limit and
//! length.

use std::fmt::Write;
use thalweg_buffer::{Flags, GsoKind, PktMut};
use thalweg_feat_ip::link::Packets;
use thalweg_fib::LinkType;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{HEADER_LEN, Ipv6View};

/// IPv6 packets.
pub struct Ipv6Packets;

/// Writes link headers.
pub type Link = thalweg_feat_ip::link::Link<Ipv6Packets>;

impl Packets for Ipv6Packets {
    type Address = u128;

    const LINK: LinkType = LinkType::Ip6;

    #[inline(always)]
    fn decrement(header: &mut [u8]) -> bool {
        decrement_hop_limit(header)
    }

    fn describe(packet: &[u8], out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(packet, out, 0);
    }
}

/// Returns whether a packet that exceeds the MTU is a GSO packet whose segments suit it.
#[cold]
pub(crate) fn suits(p: &PktMut<'_>, mtu: u16) -> bool {
    if !p.flags().contains(Flags::OFFLOAD) {
        return false;
    }
    let o = p.meta().offload;
    let Ok(transport) = Ipv6View::parse_prefix(p.data()).and_then(|ip| ip.transport()) else {
        return false;
    };
    // The device's length of the headers is only a hint.
    let headers = HEADER_LEN
        + transport.offset
        + match transport.protocol {
            protocol::UDP => 8,
            _ => usize::from(transport.payload.get(12).map_or(0, |b| b >> 4)) * 4,
        };
    o.gso != GsoKind::None && headers + usize::from(o.gso_size) <= usize::from(mtu)
}

/// Decrements the hop limit of an IPv6 header; returns false, with nothing done, if it has expired.
#[inline(always)]
pub(crate) fn decrement_hop_limit(ip: &mut [u8]) -> bool {
    match ip.get_mut(7) {
        Some(hops) if *hops > 1 => {
            *hops -= 1;
            true
        }
        _ => false,
    }
}
