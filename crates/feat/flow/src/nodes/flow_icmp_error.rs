//! `flow-icmp-error`: restores the original packet quoted in the router's own ICMP errors about
//! packets that rules have translated.
//!
//! Reads: the IPv4 header. Next: along the `ip4-icmp-error-reply` arc.

use std::fmt::Write;
use std::sync::Arc;

use thalweg_buffer::{Frame, PktMut};
use thalweg_conntrack::{Batch, IPV4, Tracker};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, PerWorker, Verdict};
use thalweg_tables::snapshot::Snapshot;

use crate::nodes::flow_rules::millis;
use crate::rewrite;
use crate::tables::Published;

thalweg_graph::errors! { RESTORED: Info, 256, "icmp errors of the router translated"; }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "flow-icmp-error",
    errors: ERRORS,
    drop: "ip4-drop",
    // The translation that was made last is undone first.
    feature: Some(FeatureDecl {
        arc: "ip4-icmp-error-reply",
        before: &[],
        after: &["nat44-ed-icmp-error"],
    }),
    build: |cx| {
        Built::node(FlowIcmpError {
            snapshot: cx.shared(),
            tracker: cx.control.per_worker(),
            batch: Batch::default(),
        })
    },
    ..NodeDecl::DEFAULT
};

struct FlowIcmpError {
    snapshot: Arc<Snapshot<Published>>,
    tracker: PerWorker<Tracker>,
    batch: Batch<IPV4>,
}

impl Node for FlowIcmpError {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Some(tracker) = cx.take_local(self.tracker) else { return Verdict::CONTINUE };
        let now = millis(cx.now());
        let zones = &self.snapshot.load(cx.guard()).translated_zones;
        let done = rewrite::restore(&tracker, &mut self.batch, zones, p.data_mut(), now);
        cx.put_local(self.tracker, tracker);
        cx.count(RESTORED, u64::from(done));
        Verdict::CONTINUE
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
