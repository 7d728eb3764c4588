//! What all neighbour discovery messages have in common: checks, and link-layer addresses.

use std::net::Ipv6Addr;
use thalweg_buffer::PktMut;
use thalweg_wire::MacAddr;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::nd::{HOP_LIMIT, Message};

/// A message whose checksum `ip6-icmp-input` has verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'p> {
    pub(crate) src: Ipv6Addr,
    pub(crate) dst: Ipv6Addr,
    pub(crate) message: Message<'p>,
}

/// Why a message is not valid (RFC 4861 sections 6.1, 7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// It may have come from beyond the link.
    HopLimit,
    /// Its code is not 0.
    Code,
    /// It is too short, or its options are malformed.
    Length,
}

/// Reads a message and makes the checks that all of them need.
pub(crate) fn read(packet: &[u8]) -> Result<Received<'_>, Fault> {
    let ip = Ipv6View::parse_prefix(packet).map_err(|_| Fault::Length)?;
    if ip.hop_limit() != HOP_LIMIT {
        return Err(Fault::HopLimit);
    }
    let transport = ip.transport().map_err(|_| Fault::Length)?;
    let icmp = Icmp6View::parse(transport.payload).map_err(|_| Fault::Length)?;
    if icmp.code() != 0 {
        return Err(Fault::Code);
    }
    let Some(Ok(message)) = Message::parse(&icmp) else { return Err(Fault::Length) };
    if message.options().any(|option| option.is_err()) {
        return Err(Fault::Length);
    }
    Ok(Received { src: ip.src(), dst: ip.dst(), message })
}

/// Returns the source of the frame that a packet came in: its Ethernet header may have up to two
/// tags, and the ethertype before the packet is IPv6's.
pub(crate) fn frame_source(p: &PktMut<'_>) -> Option<MacAddr> {
    let before = p.before(22);
    let tags = |back: usize| before.len().checked_sub(back).and_then(|i| before.get(i..));
    let ether = |len: usize| {
        let header = tags(len)?;
        // Tags are where they have to be.
        let is_tag = |at: usize| matches!(header.get(at..at + 2), Some([0x81 | 0x88 | 0x91, _]));
        let all = (12..len - 2).step_by(4).all(is_tag);
        all.then(|| header.get(6..12)?.first_chunk().map(|mac| MacAddr(*mac)))?
    };
    [22, 18, 14].into_iter().find_map(ether)
}
