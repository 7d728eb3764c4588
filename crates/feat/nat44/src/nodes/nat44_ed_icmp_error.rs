//! `nat44-ed-icmp-error`: restores the original packet quoted in the router's own ICMP errors about
//! translated packets.
//!
//! Reads: rx interface (its table). Next: along the `ip4-icmp-error-reply` arc.

use crate::worker::Nat;
use crate::{time, translate};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_feat_ip4::tables::Tables;
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, PerWorker, Stage, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! { TRANSLATED: Info, 256, "icmp errors of the router translated"; }

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "nat44-ed-icmp-error",
    errors: ERRORS,
    drop: "ip4-drop",
    feature: Some(FeatureDecl::on("ip4-icmp-error-reply").at(Stage::Translation)),
    build: |cx| Built::node(NatIcmpError { tables: cx.shared(), here: cx.control.per_worker() }),
    ..NodeDecl::DEFAULT
};

struct NatIcmpError {
    tables: Arc<Snapshot<Tables>>,
    here: PerWorker<Nat>,
}

impl Node for NatIcmpError {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let table = self.tables.load(cx.guard()).fib_id(p.rx_if());
        let now = time::millis(cx.now());
        let done =
            cx.with_local(self.here, |nat| translate::own_error(nat, p.data_mut(), table, now));
        cx.count(TRANSLATED, u64::from(done == Some(true)));
        Verdict::CONTINUE
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
