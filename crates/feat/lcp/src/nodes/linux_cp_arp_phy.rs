//! `linux-cp-arp-phy`: ARP replies, and what hosts say of themselves unasked, go to the twin of the
//! interface as well: both learn. Requests for addresses that links on the twin have go to the twin
//! alone.
//!
//! Reads: rx interface, the Ethernet header before the packet. Next: the output of the twin's TAP,
//! or the next feature of the `arp` arc.

use super::linux_cp_punt::{Reasons, ToTwin};
use crate::class::{self, Class};
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::ethernet::ethertype;

thalweg_graph::errors! {
    PACKETS: Info, UNKNOWN, "ARP packets processed";
    COPIED: Info, UNKNOWN, "ARP replies copied to host";
    PUNT_RATE: Error, TRAFFIC_SHAPING, "punt-rate: class of packets above its limit";
    NO_TWIN: Error, DEV_READY, "interface has no twin any more";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for Ethernet header";
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
        let kind = (ethertype::ARP, Class::Arp);
        let to = p.data().get(24..).and_then(<[u8]>::first_chunk::<4>).copied();
        let table = self.0.table.load(cx.guard());
        if !class::is_news(p.data()) && to.is_some_and(|to| table.is_of_host(p.rx_if(), to)) {
            let reasons = Reasons { rate: PUNT_RATE, no_twin: NO_TWIN, no_room: NO_ROOM };
            return self.0.send(cx, &mut p, kind, &reasons);
        }
        if class::is_news(p.data()) && self.0.send_copy(cx, &mut p, kind) {
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
