//! `ip6-rewrite-out`: the link header of packets that have passed the features of `ip6-output`.
//!
//! Reads: aux (the adjacency), tx interface. Next: the adjacency's output node. An adjacency that
//! has changed since is not resolved again: these packets would pass the features twice.

use crate::link::{Link, suits};
use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_fib::Dpo;
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::errors! {
    TOO_BIG: Error, FRAG_NEEDED, "ip6 MTU exceeded";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for link header";
    LOST: Error, DEV_READY, "next hop lost during output features";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-rewrite-out",
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| Built::node(Ip6RewriteOut { link: Link::new(cx) }),
    ..NodeDecl::DEFAULT
};

struct Ip6RewriteOut {
    link: Link,
}

impl Node for Ip6RewriteOut {
    #[inline]
    fn packet(&mut self, _: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.link.dpos.get(Dpo(p.aux()));
        let state = entry.state();
        // A packet that a feature held may find another adjacency under this number.
        if !state.kind.is_complete() || state.tx_if() != p.tx_if() {
            return Verdict::drop(LOST);
        }
        if p.total_len() > usize::from(state.mtu) && !suits(&p, state.mtu) {
            return Verdict::drop(TOO_BIG);
        }
        self.link.write(&mut p, entry, state).unwrap_or(Verdict::drop(NO_ROOM))
    }

    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let here = |i: usize, dpo: u32| {
            self.link.dpos.get(Dpo(dpo)).state().tx_if() == frame.tx_if(i as u8)
        };
        if frame.flags().contains(Flags::CHAINED)
            || !frame.aux().iter().enumerate().all(|(i, dpo)| here(i, *dpo))
        {
            return FrameVerdict::PerPacket;
        }
        self.link.frame::<V, false>(frame, each)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        self.link.trace(frame, i, out);
    }
}
