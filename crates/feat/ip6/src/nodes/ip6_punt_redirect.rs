//! `ip6-punt-redirect`: sends punted packets by the paths of their interface's redirect.
//!
//! Reads: rx interface. Writes: aux (the forwarding object), hop limit, if it is below 2. Next: by
//! the object's kind, as `ip6-lookup`.

use super::ip6_lookup::{ERRORS, Ip6Lookup, NEXT_NODES};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_feat_ip::redirect::Redirects;
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-punt-redirect",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-punt")),
    build: |cx| Built::node(PuntRedirect { lookup: Ip6Lookup::new(cx), redirects: cx.shared() }),
    ..NodeDecl::DEFAULT
};

/// Offset of the hop limit.
const HOP_LIMIT: usize = 7;
/// Hop limit that a packet needs to leave.
const LEAST: u8 = 2;

struct PuntRedirect {
    lookup: Ip6Lookup,
    redirects: Arc<Snapshot<Redirects<u128>>>,
}

impl Node for PuntRedirect {
    fn begin(&mut self, _: &mut NodeCx<'_>, _: &Frame) {
        self.lookup.begin_counting();
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        // It may have been removed while the packet was on its way.
        let Some(dpo) = self.redirects.load(cx.guard()).get(p.rx_if()) else {
            return Verdict::CONTINUE;
        };
        cx.stats().interface(p.rx_if()).punt.add(1);
        // One that arrived with its last hop still gets there: the path takes one off.
        if let Some(hops) = p.data_mut().get_mut(HOP_LIMIT) {
            *hops = (*hops).max(LEAST);
        }
        self.lookup.redirect(cx, p, dpo)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[usize::from(i)]);
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
