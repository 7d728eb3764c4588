//! The nodes, which differ in the version of IP and the way of packets.

use crate::{All, Clamp, Limits};
use std::fmt::Write;
use std::marker::PhantomData;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, PktMut, SwIfIndex};
use thalweg_graph::{BuildCx, Built, Node, NodeCx, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6;
use thalweg_wire::nat::packet;
use thalweg_wire::packet::PacketView;
use thalweg_wire::tcp::{self, TcpOption, TcpView};

thalweg_graph::errors! {
    CLAMPED: Info, UNKNOWN, "clamped";
}

/// Offset of the next header in that of IPv6.
const NEXT_HEADER: usize = 6;
/// Offset of the flags in a TCP header.
const FLAGS: usize = 13;

/// A version of IP.
pub(crate) trait Version: 'static {
    /// Returns where the TCP segment of a packet that opens a connection begins and ends.
    fn opening(packet: &[u8]) -> Option<(usize, usize)>;

    /// Returns the limit for its connections.
    fn limit(limits: &Limits) -> Option<Clamp>;

    /// Describes a packet.
    fn describe(packet: &[u8], out: &mut dyn Write);
}

/// IPv4. The first fragment of a packet has the option.
pub(crate) struct Ip4;

impl Version for Ip4 {
    #[inline]
    fn opening(packet: &[u8]) -> Option<(usize, usize)> {
        if packet.get(9) != Some(&protocol::TCP) {
            return None;
        }
        let parsed = packet::parse(packet, 0);
        // Without a whole header there are no flags.
        (parsed.flags & tcp::flag::SYN != 0).then_some((parsed.l4, parsed.end))
    }

    fn limit(limits: &Limits) -> Option<Clamp> {
        limits.ip4
    }

    fn describe(packet: &[u8], out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(packet, out, 0);
    }
}

/// IPv6.
pub(crate) struct Ip6;

impl Version for Ip6 {
    #[inline]
    fn opening(packet: &[u8]) -> Option<(usize, usize)> {
        match packet.get(NEXT_HEADER) {
            // The common case: no extension headers, and not the first segment of a connection.
            Some(&protocol::TCP) => {
                let flags = packet.get(ipv6::HEADER_LEN + FLAGS);
                if flags.is_none_or(|flags| flags & tcp::flag::SYN == 0) {
                    return None;
                }
            }
            Some(&protocol::UDP | &protocol::ICMPV6) | None => return None,
            Some(_) => {}
        }
        opening_behind_extensions(packet)
    }

    fn limit(limits: &Limits) -> Option<Clamp> {
        limits.ip6
    }

    fn describe(packet: &[u8], out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(packet, out, 0);
    }
}

/// [`Version::opening`] for what may open a connection, behind extension headers or not.
#[inline(never)]
fn opening_behind_extensions(packet: &[u8]) -> Option<(usize, usize)> {
    let view = PacketView::read_prefix(packet)?;
    let opens = view.tcp_flags().is_some_and(|flags| flags & tcp::flag::SYN != 0);
    opens.then(|| (view.l4(), view.end()))
}

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

/// The way of packets that the interface with the limit receives.
pub(crate) const IN: bool = false;
/// The way of packets that it sends.
pub(crate) const OUT: bool = true;

/// Lowers the MSS of the SYNs of a version that go one way.
pub(crate) struct Lower<V, const WAY: bool> {
    limits: Arc<Snapshot<All>>,
    version: PhantomData<fn() -> V>,
}

impl<V: Version, const WAY: bool> Lower<V, WAY> {
    /// Builds the node.
    pub(crate) fn build(cx: &BuildCx<'_>) -> Built {
        Built::node(Self { limits: cx.shared(), version: PhantomData })
    }

    fn limit(&self, cx: &NodeCx<'_>, sw_if: SwIfIndex) -> Option<Clamp> {
        self.limits.load(cx.guard()).get(sw_if).and_then(V::limit)
    }

    /// Lowers the MSS of a packet whose segment is there to the limit of its interface.
    #[inline(never)]
    fn opened(&self, cx: &mut NodeCx<'_>, p: &mut PktMut<'_>, at: (usize, usize)) {
        let limit = self.limit(cx, if WAY == OUT { p.tx_if() } else { p.rx_if() });
        if lower(p, at, limit) {
            cx.count(CLAMPED, 1);
        }
    }
}

impl<V: Version, const WAY: bool> Node for Lower<V, WAY> {
    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        if let Some(at) = V::opening(p.data()) {
            self.opened(cx, &mut p, at);
        }
        Verdict::CONTINUE
    }

    fn trace(&self, cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let limit = self.limit(cx, if WAY == OUT { frame.tx_if(i) } else { frame.rx_if(i) });
        let _ = writeln!(out, "max mss: {}", limit.map_or(0, |limit| limit.mss));
        V::describe(frame.data(i), out);
    }
}
