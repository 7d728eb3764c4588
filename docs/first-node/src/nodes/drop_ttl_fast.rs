//! `drop-ttl-fast`: as `drop-ttl`, with a frame kernel.
//!
//! Reads: the IPv4 header. Next: the next feature of the `ip4-unicast` arc.

use std::fmt::Write;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, PktMut, Rows};
use thalweg_graph::{Built, FeatureDecl, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::errors! {
    UNLUCKY: Error, UNKNOWN, "unlucky ttl";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "drop-ttl-fast",
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-unicast").after(&["drop-ttl"])),
    build: |_| Built::node(DropTtl),
    ..NodeDecl::DEFAULT
};

struct DropTtl;

impl Node for DropTtl {
    fn packet(&mut self, _cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        match p.data().get(8) {
            Some(13) => Verdict::drop(UNLUCKY),
            _ => Verdict::CONTINUE,
        }
    }

    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let mut rest = Rows::NONE;
        for (at, present) in frame.lane_groups() {
            // Sixteen packets: their first 20 bytes as five vectors of sixteen words.
            let [_, _, third, ..] = frame.words5::<V>(at);
            let unlucky = (third & V::splat(0xff)).eq(V::splat(13));
            rest.insert_lanes(at, unlucky & present);
        }
        each[..frame.len()].fill(Verdict::CONTINUE);
        FrameVerdict::Each(rest)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
