//! `linux-cp-xc-ip4`: IPv4 packets of a twin leave by its interface as the kernel wrote them:
//! without a look-up, with the TTL that they have, past the features of `ip4-output`.
//!
//! Reads: rx interface. Writes: tx interface, aux (the interface's object for such packets). Next:
//! the first feature of the arc `ip4-output` of the interface, or `ip4-rewrite-out`.

use super::linux_cp_punt::trace;
use crate::table::{self, Table};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_graph::{ArcId, BuildCx, Built, FeatureDecl, Node, NodeCx, NodeDecl, Stage, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::next_nodes! { OUT => "ip4-rewrite-out" }
thalweg_graph::errors! {
    NO_PAIR: Error, DEV_READY, "twin has no interface any more";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-xc-ip4",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FEATURE),
    also_on: &["ip4-multicast"],
    build: |cx| build(cx, 0, "lcp-xc"),
    ..NodeDecl::DEFAULT
};

/// Ahead of all: the router's end needs no address.
pub(super) const FEATURE: FeatureDecl = FeatureDecl::on("ip4-unicast").at(Stage::Passage);

/// The arcs by which packets of both versions leave.
const OUTPUT: [&str; 2] = ["ip4-output", "ip6-output"];

/// Builds the node of a version: 0 for IPv4, 1 for IPv6.
pub(super) fn build(cx: &BuildCx<'_>, version: usize, name: &'static str) -> Built {
    let output = cx.arc(OUTPUT[version]);
    Built::node(Xc { table: table::of(cx), version, output, name })
}

struct Xc {
    table: Arc<Snapshot<Table>>,
    version: usize,
    output: ArcId,
    name: &'static str,
}

impl Node for Xc {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Some(original) = self.table.load(cx.guard()).original(p.rx_if()) else {
            return Verdict::drop(NO_PAIR);
        };
        // One that the kernel addresses to a group is counted as such when it is sent.
        if p.may_have_flags() && p.flags().contains(Flags::GROUP) {
            p.mark(Flags::MULTICAST);
        }
        p.set_tx_if(original.phy);
        p.set_aux(original.to[self.version].get());
        cx.arcs().first(self.output, original.phy).map_or(OUT, Verdict::node)
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        trace(self.name, frame, i, out);
    }
}
