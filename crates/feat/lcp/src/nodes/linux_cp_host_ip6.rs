//! `linux-cp-host-ip6`: IPv6 packets for an address that a link on the twin of the interface has,
//! such as that of a virtual router, go to the twin. Solicitations of such a neighbour come by
//! `linux-cp-mcast-ip6`.
//!
//! Reads: rx interface, the Ethernet header before the packet. Writes: tx interface. Next: the
//! output of the twin's TAP, or the next feature of the `ip6-unicast` arc. A class of packets that
//! has used up its limit is dropped.

use super::linux_cp_punt::{Reasons, ToTwin, trace};
use crate::class;
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Stage, Verdict};
use thalweg_wire::ethernet::ethertype;

thalweg_graph::errors! {
    PUNT_RATE: Error, TRAFFIC_SHAPING, "punt-rate: class of packets above its limit";
    NO_TWIN: Error, DEV_READY, "interface has no twin any more";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for Ethernet header";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-host-ip6",
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-unicast").at(Stage::Passage)),
    build: |cx| Built::node(HostIp6(ToTwin::new(cx))),
    ..NodeDecl::DEFAULT
};

struct HostIp6(ToTwin);

impl Node for HostIp6 {
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.0.gate.begin(cx);
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let to = p.data().get(24..).and_then(<[u8]>::first_chunk::<16>).copied();
        let table = self.0.table.load(cx.guard());
        if !to.is_some_and(|to| table.is_of_host6(p.rx_if(), to)) {
            return Verdict::CONTINUE;
        }
        let class = class::of_ip(p.data());
        let reasons = Reasons { rate: PUNT_RATE, no_twin: NO_TWIN, no_room: NO_ROOM };
        self.0.send(cx, &mut p, (ethertype::IPV6, class), &reasons)
    }

    fn end(&mut self, cx: &mut NodeCx<'_>) {
        self.0.gate.end(cx);
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        trace("lip-host", frame, i, out);
    }
}
