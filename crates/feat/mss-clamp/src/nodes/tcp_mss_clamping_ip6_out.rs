//! `tcp-mss-clamping-ip6-out`: lowers the MSS of SYNs over IPv6 that an interface sends.
//!
//! Reads: tx interface, the IPv6 and TCP headers. Keeps: aux (the adjacency). Next: the next
//! feature of the `ip6-output` arc.

use crate::{All, lower};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Stage, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    CLAMPED: Info, UNKNOWN, "clamped";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "tcp-mss-clamping-ip6-out",
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-output").at(Stage::Shaping)),
    build: |cx| Built::node(ClampOut { limits: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct ClampOut {
    limits: Arc<Snapshot<All>>,
}

impl Node for ClampOut {
    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let tx_if = p.tx_if();
        if lower::ip6(&self.limits, cx, &mut p, tx_if) {
            cx.count(CLAMPED, 1);
        }
        Verdict::CONTINUE
    }

    fn trace(&self, cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let limits = self.limits.load(cx.guard()).get(&frame.tx_if(i));
        lower::trace(limits.and_then(|limits| limits.ip6), out);
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
