//! `nat44-ed-icmp-error`: restores the original packet quoted in the router's own ICMP errors about
//! translated packets. One between inside hosts was translated twice; the worker that knows of the
//! first translation only by its port hands the error to the one that made it.
//!
//! Reads: rx interface (its table); aux (the interface by which the packet would have left). Next:
//! along the `ip4-icmp-error-reply` arc.

use crate::config::Config;
use crate::direction::ERRORS as QUEUE;
use crate::owners::Places;
use crate::time;
use crate::translate::own_errors::{Restored, Way, restore};
use crate::worker::Nat;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, LOCAL_IF, PktMut, Search, SwIfIndex};
use thalweg_feat_ip4::tables::Tables;
use thalweg_graph::{
    Built, FeatureDecl, HandOff, Node, NodeCx, NodeDecl, PerWorker, Stage, Verdict,
};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::nat::packet;
use thalweg_wire::nat::tuple::Tuple;

thalweg_graph::errors! { TRANSLATED: Info, UNKNOWN, "icmp errors of the router translated"; }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "nat44-ed-icmp-error",
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-icmp-error-reply").at(Stage::Translation)),
    build: |cx| {
        Built::node(NatIcmpError {
            config: cx.shared(),
            tables: cx.shared(),
            here: cx.control.per_worker(),
            queue: cx.hand_off(QUEUE),
            worker: cx.worker,
            workers: cx.control.config().workers.len(),
        })
    },
    ..NodeDecl::DEFAULT
};

struct NatIcmpError {
    config: Arc<Snapshot<Config>>,
    tables: Arc<Snapshot<Tables>>,
    here: PerWorker<Nat>,
    queue: HandOff,
    worker: usize,
    workers: usize,
}

impl NatIcmpError {
    /// Asks the next worker that may know of the first translation to undo it. `answer` is that to
    /// the packet as that translation has made it; `search` is the progress so far.
    fn hand_over(
        &self,
        cx: &NodeCx<'_>,
        p: &mut PktMut<'_>,
        answer: &Tuple,
        search: Search,
    ) -> Verdict {
        let config = self.config.load(cx.guard());
        let Places { owner, before } = config.places(answer, true, self.worker, self.workers);
        let (to, next) = match (search, before) {
            (Search::New, _) if owner != self.worker => (owner, Search::Before),
            (Search::New | Search::Before, Some(before)) if before != self.worker => {
                (before, Search::Done)
            }
            _ => return Verdict::CONTINUE,
        };
        p.meta_mut().search = next;
        self.queue.to(to)
    }
}

impl Node for NatIcmpError {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let search = p.take_search();
        let is_half = search != Search::New;
        let tables = self.tables.load(cx.guard());
        let to = Some(SwIfIndex(p.aux())).filter(|tx_if| *tx_if != LOCAL_IF);
        let way = Way {
            from: tables.fib_id(p.rx_if()),
            to: to.map(|tx_if| tables.fib_id(tx_if)),
            tables,
        };
        let now = time::millis(cx.now());
        let done = cx.with_local(self.here, |nat| restore(nat, p.data_mut(), way, is_half, now));
        match done {
            Some(Restored::Half(answer)) => self.hand_over(cx, &mut p, &answer, search),
            Some(Restored::Not) if is_half => {
                let answer = Tuple::of(&packet::parse(p.data(), way.from.get()).key);
                self.hand_over(cx, &mut p, &answer, search)
            }
            done => {
                cx.count(TRANSLATED, u64::from(done == Some(Restored::Whole)));
                Verdict::CONTINUE
            }
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
