//! `flow-icmp-error`: restores the original packet quoted in the router's own ICMP errors about
//! packets that rules have translated. Behind the rules, NAT44 may have handed the packet to a
//! worker that does not know its connection: the error goes to the one that tracks it.
//!
//! Reads: the IPv4 header. Next: along the `ip4-icmp-error-reply` arc.

use std::fmt::Write;
use std::sync::Arc;

use thalweg_buffer::{Frame, PktMut, Search};
use thalweg_conntrack::batch::Packets;
use thalweg_conntrack::{Batch, IPV4, Parts, Tracker};
use thalweg_graph::{
    BuildCx, Built, FeatureDecl, HandOff, Node, NodeCx, NodeDecl, PerWorker, Stage, Verdict,
};
use thalweg_tables::snapshot::Snapshot;

use crate::ERRORS as QUEUE;
use crate::nodes::flow_rules::millis;
use crate::rewrite;
use crate::spread::{Place, Spread};
use crate::tables::Published;

thalweg_graph::errors! { RESTORED: Info, UNKNOWN, "icmp errors of the router translated"; }

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
    /// Absent for IPv6, which nothing hands to another worker behind the rules.
    queue: Option<HandOff>,
    worker: usize,
    workers: usize,
}

/// Builds the node of a family.
pub(super) fn build<const W: usize>(cx: &BuildCx<'_>) -> Built
where
    Tracker: Parts<W>,
    Batch<W>: Packets<W>,
{
    let (snapshot, tracker) = (cx.shared(), cx.control.per_worker());
    Built::node(FlowIcmpError::<W> {
        snapshot,
        tracker,
        batch: Batch::default(),
        queue: (W == IPV4).then(|| cx.hand_off(QUEUE)),
        worker: cx.worker,
        workers: cx.control.config().workers.len(),
    })
}

impl<const W: usize> FlowIcmpError<W>
where
    Batch<W>: Packets<W>,
{
    /// The verdict for an error, which is in the batch, about a packet that this worker has not
    /// translated.
    fn elsewhere(&self, p: &mut PktMut<'_>, spread: Spread) -> Verdict {
        let place = Place { worker: self.worker, workers: self.workers, spread };
        let owner = self.batch.tuple(0).and_then(|tuple| place.owner(&tuple));
        match (&self.queue, owner) {
            (Some(queue), Some(owner)) if owner != self.worker => {
                p.meta_mut().search = Search::Done;
                queue.to(owner)
            }
            _ => Verdict::CONTINUE,
        }
    }
}

impl<const W: usize> Node for FlowIcmpError<W>
where
    Tracker: Parts<W>,
    Batch<W>: Packets<W>,
{
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Some(tracker) = cx.take_local(self.tracker) else { return Verdict::CONTINUE };
        let now = millis(cx.now());
        let was_sent = p.take_search() == Search::Done;
        let Published { translated_zones: zones, spread, .. } = self.snapshot.load(cx.guard());
        let done = rewrite::restore(&tracker, &mut self.batch, zones, p.data_mut(), now);
        cx.put_local(self.tracker, tracker);
        cx.count(RESTORED, u64::from(done));
        match done || was_sent || self.workers < 2 {
            true => Verdict::CONTINUE,
            false => self.elsewhere(&mut p, *spread),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let describe = if W == IPV4 { thalweg_wire::fmt::ip4 } else { thalweg_wire::fmt::ip6 };
        let _ = describe(frame.data(i), out, 0);
    }
}
