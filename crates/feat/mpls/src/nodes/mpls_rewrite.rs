//! `mpls-rewrite`: the link header of labelled packets that have passed the features of
//! `mpls-output`.
//!
//! Reads: aux (the adjacency), tx interface. Next: the adjacency's output node.

use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_feat_ip4::link::Link;
use thalweg_fib::Dpo;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::errors! {
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for link header";
    LOST: Error, DEV_READY, "next hop lost during output features";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "mpls-rewrite",
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| Built::node(MplsRewrite { link: Link::new(cx) }),
    ..NodeDecl::DEFAULT
};

struct MplsRewrite {
    link: Link,
}

impl Node for MplsRewrite {
    fn packet(&mut self, _: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.link.dpos.get(Dpo(p.aux()));
        let state = entry.state();
        if !state.kind.is_complete() || state.tx_if() != p.tx_if() {
            return Verdict::drop(LOST);
        }
        self.link.write(&mut p, entry, state).unwrap_or(Verdict::drop(NO_ROOM))
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        self.link.trace(frame, i, out);
    }
}
