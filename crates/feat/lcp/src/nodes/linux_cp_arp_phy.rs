//! `linux-cp-arp-phy`: ARP replies, and what hosts say of themselves unasked, go to the twin of the
//! interface as well: both learn.
//!
//! Reads: rx interface, the Ethernet header before the packet. Next: the next feature of the `arp`
//! arc.

use super::linux_cp_punt::ToTwin;
use crate::class::{self, Class};
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::ethernet::ethertype;

thalweg_graph::errors! {
    PACKETS: Info, UNKNOWN, "ARP packets processed";
    COPIED: Info, UNKNOWN, "ARP replies copied to host";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-arp-phy",
    errors: ERRORS,
    feature: Some(FeatureDecl::on("arp")),
    build: |cx| Built::node(ArpPhy(ToTwin::new(cx))),
    ..NodeDecl::DEFAULT
};

struct ArpPhy(ToTwin);

/// Describes an ARP packet as VPP does.
pub(super) fn trace(frame: &Frame, i: u8, out: &mut dyn Write) {
    let opcode = thalweg_wire::bytes::get_be16(frame.data(i), 6).unwrap_or(0);
    let rx = interface_token(frame.rx_if(i));
    let _ = writeln!(out, "rx-sw-if-index: {rx} opcode: {opcode}");
}

impl Node for ArpPhy {
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.0.gate.begin(cx);
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        cx.count(PACKETS, 1);
        if class::is_news(p.data()) && self.0.send_copy(cx, &mut p, (ethertype::ARP, Class::Arp)) {
            cx.count(COPIED, 1);
        }
        Verdict::CONTINUE
    }

    fn end(&mut self, cx: &mut NodeCx<'_>) {
        self.0.gate.end(cx);
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        trace(frame, i, out);
    }
}
