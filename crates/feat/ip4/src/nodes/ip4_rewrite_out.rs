//! `ip4-rewrite-out`: the link header of packets that have passed the features of `ip4-output`.
//!
//! Reads: aux (the adjacency), tx interface. Next: the adjacency's output node; `ip4-frag` for
//! packets that exceed the MTU. An adjacency that has changed since is not resolved again: these
//! packets would pass the features twice.

use crate::link::{Length, Link, too_long};
use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_fib::{Dpo, Kind};
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { FRAG => "ip4-frag" }
thalweg_graph::errors! {
    TOO_BIG: Error, FRAG_NEEDED, "ip4 MTU exceeded and DF set";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for link header";
    LOST: Error, DEV_READY, "next hop lost during output features";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-rewrite-out",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| Built::node(Ip4RewriteOut { link: Link::new(cx) }),
    ..NodeDecl::DEFAULT
};

struct Ip4RewriteOut {
    link: Link,
}

impl Node for Ip4RewriteOut {
    #[inline]
    fn packet(&mut self, _: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.link.dpos.get(Dpo(p.aux()));
        let state = entry.state();
        // A packet that a feature held may find another adjacency under this number.
        let sends = state.kind.is_complete() || state.kind == Kind::MULTICAST;
        if !sends || state.tx_if() != p.tx_if() {
            return Verdict::drop(LOST);
        }
        if p.total_len() > usize::from(state.mtu) {
            match too_long(&p, state.mtu) {
                Length::Suits => {}
                Length::Fragment => return FRAG,
                Length::Refused => return Verdict::drop(TOO_BIG),
            }
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
