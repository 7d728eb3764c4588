//! `ip4-rewrite`: TTL, MTU and the new link header.
//!
//! Reads: aux (the adjacency). Next: the adjacency's output node; `ip4-frag` for packets that
//! exceed the MTU. On an interface with features on the `ip4-output` arc, the first of them: TTL,
//! MTU and DF are checked by then, and `ip4-rewrite-out` writes the link header after the last.
//! Locally originated packets keep their TTL. A multicast group determines the MAC address. Writes:
//! tx interface, for these features, for errors, and where that is a sub-interface.

use crate::icmp::{self, Cause};
use crate::link::{Length, Link, decrement_ttl, too_long};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{FRAME_SIZE, Flags, Frame, LOCAL_IF, PktMut, Rows};
use thalweg_device::SwIfIndex;
use thalweg_fib::{Counted, Dpo, EntryState, Kind, ObjectCounters};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{
    ArcId, Built, ErrorCode, FrameVerdict, Node, NodeCx, NodeDecl, NodeId, Verdict,
};

thalweg_graph::next_nodes! {
    FRAG => "ip4-frag",
    ARP => "ip4-arp",
    ICMP_ERROR => "ip4-icmp-error",
    OUT => "ip4-rewrite-out",
}
thalweg_graph::errors! {
    TTL: Error, TTL_EXCEEDED, "ip4 ttl <= 1";
    TOO_BIG: Error, FRAG_NEEDED, "ip4 MTU exceeded and DF set";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for link header";
    DOWN: Error, DEV_READY, "next-hop interface is down";
    LINK_LOCAL: Error, DIP_IS_LINK_LOCAL, "link-local address: not forwarded";
    SAME_LINK: Error, SPLIT_HORIZON, "multicast packet would return to its link";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-rewrite",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| {
        let output = cx.arc("ip4-output");
        Built::node(Ip4Rewrite { link: Link::new(cx), output, used: false, counters: cx.shared() })
    },
    ..NodeDecl::DEFAULT
};

/// Returns why a packet to a multicast group is not sent by an adjacency: groups that stay on their
/// link (RFC 5771 section 4), and links that the packet has come by, whose members have it.
#[cold]
fn keeps_group(p: &PktMut<'_>, state: EntryState, local: bool) -> Option<ErrorCode> {
    match p.data().get(16..19) {
        _ if local => None,
        Some([224, 0, 0]) => Some(LINK_LOCAL),
        _ => (p.rx_if() == state.tx_if()).then_some(SAME_LINK),
    }
}

struct Ip4Rewrite {
    link: Link,
    /// The arc `ip4-output`.
    output: ArcId,
    /// True if any interface has features on it.
    used: bool,
    counters: Arc<ObjectCounters>,
}

impl Ip4Rewrite {
    /// Counts packets by adjacency.
    #[cold]
    fn count(&self, cx: &NodeCx<'_>, frame: &Frame) {
        let all = frame.aux().iter().zip(0..).map(|(dpo, i)| (Dpo(*dpo), frame.total_len(i)));
        self.counters.count(cx.worker(), Counted::Via, all);
    }

    /// Returns the interface of all packets of a frame and its first feature; `Err` if they have
    /// not one in common.
    #[inline(always)]
    fn features(&self, cx: &NodeCx<'_>, frame: &Frame) -> Result<Option<(SwIfIndex, NodeId)>, ()> {
        let first = |tx_if| cx.arcs().first(self.output, tx_if);
        let mut all = frame.aux().iter().map(|dpo| self.link.dpos.get(Dpo(*dpo)).state().tx_if());
        let Some(tx_if) = all.next() else { return Ok(None) };
        let to = first(tx_if);
        let alike = all.all(|t| t == tx_if || to.is_none() && first(t).is_none());
        if alike { Ok(to.map(|to| (tx_if, to))) } else { Err(()) }
    }

    /// Fast path for packets that go to the features of one interface.
    #[inline(always)]
    fn to_features(
        &self,
        (tx_if, feature): (SwIfIndex, NodeId),
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let (mut mtus, mut lens) = ([0; FRAME_SIZE], [0; FRAME_SIZE]);
        for (mtu, dpo) in mtus.iter_mut().zip(frame.aux()) {
            let state = self.link.dpos.get(Dpo(*dpo)).state();
            *mtu = if state.kind == Kind::REWRITE { usize::from(state.mtu) } else { 0 };
        }
        lens.iter_mut().zip(frame.lengths()).for_each(|(to, len)| *to = len);
        let mut rest = Rows::NONE;
        let windows = frame.windows_mut::<20>(0);
        for (i, ((window, mtu), len)) in windows.zip(&mtus).zip(&lens).enumerate() {
            if !window.is_some_and(|ip| len <= mtu && decrement_ttl(ip)) {
                rest.insert(i as u8);
            }
        }
        frame.set_tx(tx_if);
        if rest.is_empty() {
            return FrameVerdict::Whole(Verdict::node(feature));
        }
        each[..frame.len()].fill(Verdict::node(feature));
        FrameVerdict::Each(rest)
    }
}

impl Node for Ip4Rewrite {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        self.used = cx.arcs().is_used(self.output);
        if self.counters.is_on() {
            self.count(cx, frame);
        }
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.link.dpos.get(Dpo(p.aux()));
        let state = entry.state();
        let flags = if p.may_have_flags() { p.flags() } else { Flags::empty() };
        let local = flags.contains(Flags::LOCAL);
        if !state.kind.is_complete() {
            match state.kind {
                Kind::INCOMPLETE => return ARP,
                Kind::MULTICAST => {
                    if let Some(why) = keeps_group(&p, state, local) {
                        return Verdict::drop(why);
                    }
                }
                _ => return Verdict::drop(DOWN),
            }
        }
        if flags.contains(Flags::LINK_LOCAL) && !local {
            return Verdict::drop(LINK_LOCAL);
        }
        if !local && !decrement_ttl(p.data_mut()) {
            p.set_tx_if(state.tx_if());
            return icmp::request_error(cx, &mut p, Cause::TTL_EXCEEDED, TTL, ICMP_ERROR);
        }
        let mut fragment = false;
        if p.total_len() > usize::from(state.mtu) {
            match too_long(&p, state.mtu) {
                Length::Suits => {}
                Length::Fragment => fragment = true,
                Length::Refused => {
                    let cause = Cause::frag_needed(state.mtu);
                    p.set_tx_if(state.tx_if());
                    return icmp::request_error(cx, &mut p, cause, TOO_BIG, ICMP_ERROR);
                }
            }
        }
        if self.used
            && let Some(feature) = cx.arcs().first(self.output, state.tx_if())
        {
            p.set_tx_if(state.tx_if());
            return Verdict::node(feature);
        }
        if fragment {
            return FRAG;
        }
        self.link.write(&mut p, entry, state).unwrap_or(Verdict::drop(NO_ROOM))
    }

    /// Fast path for packets in one segment that fit the MTU and leave by an Ethernet interface.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        const RARE: Flags = Flags::LOCAL.union(Flags::CHAINED).union(Flags::LINK_LOCAL);
        if frame.flags().intersects(RARE) {
            return FrameVerdict::PerPacket;
        }
        if self.used {
            match self.features(cx, frame) {
                Ok(None) => {}
                Ok(Some(features)) => return self.to_features(features, frame, each),
                Err(()) => return FrameVerdict::PerPacket,
            }
        }
        self.link.frame::<V, true>(frame, each)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let (tx_if, dpo) = (frame.tx_if(i), frame.aux()[usize::from(i)]);
        let (state, header) = self.link.dpos.rewrite(Dpo(dpo));
        let is_written = state.tx_if() != tx_if || frame.data(i).starts_with(&header);
        if tx_if == LOCAL_IF || is_written {
            return self.link.trace(frame, i, out);
        }
        let _ = writeln!(out, "tx {} dpo-idx {dpo}, by ip4-output", interface_token(tx_if));
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
