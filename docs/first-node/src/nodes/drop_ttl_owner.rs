//! `drop-ttl-owner`: hands each packet to the worker that owns its source address.
//!
//! Reads: the IPv4 header. Next: `drop-ttl`, on this worker or another.

use thalweg_buffer::PktMut;
use thalweg_graph::{Built, FeatureDecl, HandOff, Node, NodeCx, NodeDecl, Verdict};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "drop-ttl-owner",
    feature: Some(FeatureDecl::on("ip4-unicast").before(&["drop-ttl"])),
    build: |cx| Built::node(FindOwner { queue: cx.hand_off("drop-ttl-handoff") }),
    ..NodeDecl::DEFAULT
};

struct FindOwner {
    queue: HandOff,
}

impl Node for FindOwner {
    fn packet(&mut self, _cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let Some(source) = p.data().get(12..).and_then(|d| d.first_chunk()) else {
            return Verdict::CONTINUE;
        };
        let hash = u32::from_be_bytes(*source).wrapping_mul(0x9e37_79b1);
        self.queue.to(self.queue.owner(hash))
    }
}
