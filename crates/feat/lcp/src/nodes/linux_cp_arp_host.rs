//! `linux-cp-arp-host`: ARP packets of a twin leave by its interface as the kernel wrote them.
//!
//! Reads: rx interface, the Ethernet header before the packet. Writes: tx interface. Next: the
//! output of the interface.

use super::linux_cp_arp_phy;
use super::linux_cp_punt_xc::send_as_written;
use crate::table::{self, Table};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_device::{IfTable, Interfaces};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    PACKETS: Info, UNKNOWN, "ARP packets processed";
    NO_PAIR: Error, DEV_READY, "twin has no interface any more";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-arp-host",
    errors: ERRORS,
    feature: Some(FeatureDecl::on("arp")),
    build: |cx| {
        let (table, interfaces) = (table::of(cx), Interfaces::table(cx));
        Built::node(ArpHost { table, interfaces })
    },
    ..NodeDecl::DEFAULT
};

struct ArpHost {
    table: Arc<Snapshot<Table>>,
    interfaces: Arc<Snapshot<IfTable>>,
}

impl Node for ArpHost {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        cx.count(PACKETS, 1);
        let Some(original) = self.table.load(cx.guard()).original(p.rx_if()) else {
            return Verdict::drop(NO_PAIR);
        };
        let to = self.interfaces.load(cx.guard()).get(original.phy);
        send_as_written(&mut p, original.phy, to, NO_PAIR)
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        // Each frame may begin with its Ethernet header here.
        match frame.data(i) {
            [0, 1, ..] => linux_cp_arp_phy::trace(frame, i, out),
            data => _ = thalweg_wire::fmt::packet(data, out, 0),
        }
    }
}
