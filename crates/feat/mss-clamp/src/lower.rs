//! What the nodes do with a packet.

use crate::{All, Clamp};
use std::fmt::Write;
use thalweg_buffer::{Flags, PktMut, SwIfIndex};
use thalweg_graph::NodeCx;
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6;
use thalweg_wire::nat::packet;
use thalweg_wire::packet::PacketView;
use thalweg_wire::tcp::{self, TcpOption, TcpView};

/// Offset of the next header in that of IPv6.
const NEXT_HEADER: usize = 6;
/// Offset of the flags in a TCP header.
const FLAGS: usize = 13;

/// Lowers the MSS of a segment at these offsets to the limit; returns whether it has.
fn lower(p: &mut PktMut<'_>, (l4, end): (usize, usize), limit: Option<Clamp>) -> bool {
    let Some(Clamp { mss: most, .. }) = limit else { return false };
    let tcp = p.data().get(l4..end).and_then(|segment| TcpView::parse(segment).ok());
    let Some(tcp) = tcp else { return false };
    if !tcp.options().any(|o| matches!(o, Ok(TcpOption::MaxSegmentSize(mss)) if mss > most)) {
        return false;
    }
    let partial =
        p.may_have_flags() && p.flags().contains(Flags::OFFLOAD) && p.meta().offload.needs_csum;
    if let Some(segment) = p.data_mut().get_mut(l4..end) {
        tcp::clamp_mss(segment, most, partial);
    }
    true
}

/// Lowers the MSS of an IPv4 packet that opens a connection to the limit of an interface; returns
/// whether it has. Where the packet is a fragment, its first one has the option.
#[inline]
pub(crate) fn ip4(
    limits: &Snapshot<All>,
    cx: &NodeCx<'_>,
    p: &mut PktMut<'_>,
    sw_if: SwIfIndex,
) -> bool {
    if p.data().get(9) != Some(&protocol::TCP) {
        return false;
    }
    let parsed = packet::parse(p.data(), 0);
    // Without a whole header there are no flags.
    if parsed.flags & tcp::flag::SYN == 0 {
        return false;
    }
    let limit = limits.load(cx.guard()).get(&sw_if).and_then(|limits| limits.ip4);
    lower(p, (parsed.l4, parsed.end), limit)
}

/// [`ip4`] for an IPv6 packet.
#[inline]
pub(crate) fn ip6(
    limits: &Snapshot<All>,
    cx: &NodeCx<'_>,
    p: &mut PktMut<'_>,
    sw_if: SwIfIndex,
) -> bool {
    let data = p.data();
    match data.get(NEXT_HEADER) {
        // The common case: no extension headers, and not the first segment of a connection.
        Some(&protocol::TCP) => {
            let flags = data.get(ipv6::HEADER_LEN + FLAGS);
            if flags.is_none_or(|flags| flags & tcp::flag::SYN == 0) {
                return false;
            }
        }
        Some(&protocol::UDP | &protocol::ICMPV6) | None => return false,
        Some(_) => {}
    }
    ip6_segment(limits, cx, p, sw_if)
}

/// [`ip6`] for what may open a connection, behind extension headers or not.
#[inline(never)]
fn ip6_segment(
    limits: &Snapshot<All>,
    cx: &NodeCx<'_>,
    p: &mut PktMut<'_>,
    sw_if: SwIfIndex,
) -> bool {
    let Some(view) = PacketView::read_prefix(p.data()) else { return false };
    if view.tcp_flags().is_none_or(|flags| flags & tcp::flag::SYN == 0) {
        return false;
    }
    let at = (view.l4(), view.end());
    let limit = limits.load(cx.guard()).get(&sw_if).and_then(|limits| limits.ip6);
    lower(p, at, limit)
}

/// Writes the limit that a trace shows.
pub(crate) fn trace(limit: Option<Clamp>, out: &mut dyn Write) {
    let _ = writeln!(out, "max mss: {}", limit.map_or(0, |limit| limit.mss));
}
