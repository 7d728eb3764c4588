//! `mpls-output`: the MTU and the link header of labelled packets, with the labels that their
//! adjacency pushes.
//!
//! Reads: aux (the adjacency). Next: the adjacency's output node; where the interface has features
//! on the `mpls-output` arc, the first of them; `mpls-frag` for packets that exceed the MTU (RFC
//! 3032 section 3). Writes: tx interface, for these features and where that is a sub-interface.

use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Flags, Frame, GsoKind, PktMut};
use thalweg_feat_ip4::link::Link;
use thalweg_fib::{Dpo, Kind};
use thalweg_graph::{ArcId, Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::gso::Plan;
use thalweg_wire::mpls::{ENTRY_LEN, Stack};

thalweg_graph::next_nodes! {
    FRAG => "mpls-frag",
    INCOMPLETE => "mpls-adj-incomplete",
}
thalweg_graph::errors! {
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for link header";
    DOWN: Error, DEV_READY, "next-hop interface is down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "mpls-output",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| {
        let output = cx.arc("mpls-output");
        Built::node(MplsOutput { link: Link::new(cx), output, used: false })
    },
    ..NodeDecl::DEFAULT
};

/// Labels that are looked at; no router pushes as many.
const MAX_LABELS: usize = 64;

/// Returns whether a packet that exceeds the MTU is a GSO packet whose segments suit it.
#[cold]
fn suits(p: &PktMut<'_>, mtu: u16) -> bool {
    if !p.flags().contains(Flags::OFFLOAD) || p.meta().offload.gso == GsoKind::None {
        return false;
    }
    let labels = Stack::new(p.data()).take(MAX_LABELS).count() * ENTRY_LEN;
    let size = usize::from(p.meta().offload.gso_size);
    let plan = Plan::at(p.data(), labels, p.total_len(), size);
    plan.is_ok_and(|plan| plan.header_len() + size <= usize::from(mtu))
}

struct MplsOutput {
    link: Link,
    /// The arc `mpls-output`.
    output: ArcId,
    /// True if any interface has features on the arc.
    used: bool,
}

impl Node for MplsOutput {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.used = cx.arcs().is_used(self.output);
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.link.dpos.get(Dpo(p.aux()));
        let state = entry.state();
        if !state.kind.is_complete() {
            return match state.kind {
                Kind::INCOMPLETE => INCOMPLETE,
                _ => Verdict::drop(DOWN),
            };
        }
        if p.total_len() > usize::from(state.mtu) && !suits(&p, state.mtu) {
            return FRAG;
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
        _: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        if self.used || frame.flags().contains(Flags::CHAINED) {
            return FrameVerdict::PerPacket;
        }
        self.link.frame::<V, false>(frame, each)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        self.link.trace(frame, i, out);
    }
}
