//! `linux-cp-xc-mpls`: labelled packets of a twin leave by its interface as the kernel wrote them,
//! whether that takes labelled packets or not.
//!
//! Reads: rx interface, the Ethernet header before the packet. Writes: tx interface. Next: the
//! output of the interface.

use super::linux_cp_punt::trace;
use super::linux_cp_punt_xc::send_as_written;
use crate::table::{self, Table};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_device::{IfTable, Interfaces};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Stage, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    NO_PAIR: Error, DEV_READY, "twin has no interface any more";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-xc-mpls",
    errors: ERRORS,
    drop: "error-drop",
    feature: Some(FeatureDecl::on("mpls-input").at(Stage::Passage)),
    build: |cx| {
        let (table, interfaces) = (table::of(cx), Interfaces::table(cx));
        Built::node(XcMpls { table, interfaces })
    },
    ..NodeDecl::DEFAULT
};

struct XcMpls {
    table: Arc<Snapshot<Table>>,
    interfaces: Arc<Snapshot<IfTable>>,
}

impl Node for XcMpls {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Some(original) = self.table.load(cx.guard()).original(p.rx_if()) else {
            return Verdict::drop(NO_PAIR);
        };
        let to = self.interfaces.load(cx.guard()).get(original.phy);
        send_as_written(&mut p, original.phy, to, NO_PAIR)
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        trace("lcp-xc", frame, i, out);
    }
}
