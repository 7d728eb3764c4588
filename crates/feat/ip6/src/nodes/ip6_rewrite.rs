//! `ip6-rewrite`: hop limit, MTU and the new link header.
//!
//! Reads: aux (the adjacency). Next: the adjacency's output node; `ip6-icmp-error` for packets that
//! exceed the MTU, which routers do not fragment (RFC 8200 section 5). On an interface with
//! features on the `ip6-output` arc, the first of them: hop limit and MTU are checked by then, and
//! `ip6-rewrite-out` writes the link header after the last. Locally originated packets keep their
//! hop limit. Writes: tx interface, for these features and where that is a sub-interface.

use crate::icmp;
use crate::link::{Link, decrement_hop_limit, suits};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Flags, Frame, LOCAL_IF, PktMut};
use thalweg_fib::{Counted, Dpo, Kind, ObjectCounters};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{ArcId, Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! {
    DISCOVER => "ip6-discover-neighbor",
    ICMP_ERROR => "ip6-icmp-error",
    OUT => "ip6-rewrite-out",
}
thalweg_graph::errors! {
    HOP_LIMIT: Error, TTL_EXCEEDED, "ip6 hop limit <= 1";
    TOO_BIG: Error, FRAG_NEEDED, "ip6 MTU exceeded";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for link header";
    DOWN: Error, DEV_READY, "next-hop interface is down";
    LINK_LOCAL: Error, DIP_IS_LINK_LOCAL, "link-local source address: not forwarded";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-rewrite",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        let output = cx.arc("ip6-output");
        Built::node(Ip6Rewrite { link: Link::new(cx), output, used: false, counters: cx.shared() })
    },
    ..NodeDecl::DEFAULT
};

struct Ip6Rewrite {
    link: Link,
    /// The arc `ip6-output`.
    output: ArcId,
    /// True if any interface has features on it.
    used: bool,
    counters: Arc<ObjectCounters>,
}

impl Ip6Rewrite {
    /// Counts packets by adjacency.
    #[cold]
    fn count(&self, cx: &NodeCx<'_>, frame: &Frame) {
        let all = frame.aux().iter().zip(0..).map(|(dpo, i)| (Dpo(*dpo), frame.total_len(i)));
        self.counters.count(cx.worker(), Counted::Via, all);
    }

    /// Returns whether an interface of a frame's packets has features.
    #[inline(always)]
    fn has_features(&self, cx: &NodeCx<'_>, frame: &Frame) -> bool {
        let mut all = frame.aux().iter().map(|dpo| self.link.dpos.get(Dpo(*dpo)).state().tx_if());
        all.any(|tx_if| cx.arcs().first(self.output, tx_if).is_some())
    }
}

impl Node for Ip6Rewrite {
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
        if !state.kind.is_complete() {
            return match state.kind {
                Kind::INCOMPLETE => DISCOVER,
                _ => Verdict::drop(DOWN),
            };
        }
        let flags = if p.may_have_flags() { p.flags() } else { Flags::empty() };
        let local = flags.contains(Flags::LOCAL);
        if flags.contains(Flags::LINK_LOCAL) && !local {
            let cause = icmp::BEYOND_SCOPE;
            return icmp::request_error(cx, &mut p, cause, LINK_LOCAL, ICMP_ERROR);
        }
        // Errors quote packets as they came.
        if p.total_len() > usize::from(state.mtu) && !suits(&p, state.mtu) {
            let cause = icmp::packet_too_big(state.mtu);
            return icmp::request_error(cx, &mut p, cause, TOO_BIG, ICMP_ERROR);
        }
        if !local && !decrement_hop_limit(p.data_mut()) {
            let cause = icmp::HOP_LIMIT_EXCEEDED;
            return icmp::request_error(cx, &mut p, cause, HOP_LIMIT, ICMP_ERROR);
        }
        if self.used
            && let Some(feature) = cx.arcs().first(self.output, state.tx_if())
        {
            p.set_tx_if(state.tx_if());
            return Verdict::node(feature);
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
        if frame.flags().intersects(RARE) || self.used && self.has_features(cx, frame) {
            return FrameVerdict::PerPacket;
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
        let _ = writeln!(out, "tx {} dpo-idx {dpo}, by ip6-output", interface_token(tx_if));
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
