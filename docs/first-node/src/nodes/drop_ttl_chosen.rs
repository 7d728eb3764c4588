//! `drop-ttl-chosen`: drops packets whose TTL is that of `first unlucky-ttl`.
//!
//! Reads: the IPv4 header. Next: the next feature of the `ip4-unicast` arc.

use crate::unlucky::Unlucky;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use thalweg_buffer::PktMut;
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::errors! {
    UNLUCKY: Error, UNKNOWN, "unlucky ttl";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "drop-ttl-chosen",
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-unicast")),
    build: |cx| Built::node(DropTtl { unlucky: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct DropTtl {
    unlucky: Arc<Unlucky>,
}

impl Node for DropTtl {
    fn packet(&mut self, _cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        match p.data().get(8) {
            Some(ttl) if *ttl == self.unlucky.0.load(Relaxed) => Verdict::drop(UNLUCKY),
            _ => Verdict::CONTINUE,
        }
    }
}
