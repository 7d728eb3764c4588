//! `flow-icmp-error`: restores the original packet quoted in the router's own ICMP errors about
//! packets that rules have translated.
//!
//! Reads: the IPv4 header. Next: along the `ip4-icmp-error-reply` arc.

use std::fmt::Write;
use std::sync::Arc;

use thalweg_buffer::{Frame, PktMut};
use thalweg_conntrack::batch::Packets;
use thalweg_conntrack::{Batch, IPV4, Parts, Tracker};
use thalweg_graph::{
    BuildCx, Built, FeatureDecl, Node, NodeCx, NodeDecl, PerWorker, Stage, Verdict,
};
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
    feature: Some(FeatureDecl::on("ip4-icmp-error-reply").at(Stage::FrameTranslation)),
    build: build::<IPV4>,
    ..NodeDecl::DEFAULT
};

/// The node of a family, whose keys have `W` words; its one counter is [`RESTORED`].
struct FlowIcmpError<const W: usize> {
    snapshot: Arc<Snapshot<Published>>,
    tracker: PerWorker<Tracker>,
    batch: Batch<W>,
}

/// Builds the node of a family.
pub(super) fn build<const W: usize>(cx: &BuildCx<'_>) -> Built
where
    Tracker: Parts<W>,
    Batch<W>: Packets<W>,
{
    let (snapshot, tracker) = (cx.shared(), cx.control.per_worker());
    Built::node(FlowIcmpError::<W> { snapshot, tracker, batch: Batch::default() })
}

impl<const W: usize> Node for FlowIcmpError<W>
where
    Tracker: Parts<W>,
    Batch<W>: Packets<W>,
{
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
        let describe = if W == IPV4 { thalweg_wire::fmt::ip4 } else { thalweg_wire::fmt::ip6 };
        let _ = describe(frame.data(i), out, 0);
    }
}
