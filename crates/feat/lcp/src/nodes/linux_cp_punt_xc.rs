//! `linux-cp-punt-xc`: frames of ethertypes and OSI protocols that are passed between interfaces
//! and their twins, in both directions, as they came.
//!
//! Reads: rx interface, the Ethernet header before the packet. Writes: tx interface. Next: the
//! output of the other end of the pair.

use super::linux_cp_punt::{Reasons, ToTwin, trace};
use crate::class;
use std::fmt::Write;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::bytes::get_be16;
use thalweg_wire::ethernet::MIN_ETHERTYPE;

thalweg_graph::errors! {
    PUNT_RATE: Error, TRAFFIC_SHAPING, "punt-rate: class of frames above its limit";
    NO_PAIR: Error, NON_IP, "unknown ethernet type on interface without twin";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for Ethernet header";
    LLC: Error, NON_IP, "unsupported 802.3 LLC frame";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-punt-xc",
    errors: ERRORS,
    build: |cx| Built::node(PuntXc(ToTwin::new(cx))),
    ..NodeDecl::DEFAULT
};

struct PuntXc(ToTwin);

impl Node for PuntXc {
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.0.gate.begin(cx);
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let table = self.0.table.load(cx.guard());
        let kind = get_be16(p.before(2), 0).unwrap_or(0);
        if kind < MIN_ETHERTYPE
            && !class::osi_protocol(p.data()).is_some_and(|osi| table.passes_osi(osi))
        {
            return Verdict::drop(LLC);
        }
        if let Some(original) = table.original(p.rx_if()) {
            let to = self.0.interfaces.load(cx.guard()).get(original.phy);
            return send_as_written(&mut p, original.phy, to, NO_PAIR);
        }
        let class = class::of_frame(kind, p.data());
        let reasons = Reasons { rate: PUNT_RATE, no_twin: NO_PAIR, no_room: NO_ROOM };
        self.0.send(cx, &mut p, (kind, class), &reasons)
    }

    fn end(&mut self, cx: &mut NodeCx<'_>) {
        self.0.gate.end(cx);
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        trace("lip-xc", frame, i, out);
    }
}

/// Sends a frame of a twin by the interface, as the kernel wrote it.
pub(super) fn send_as_written(
    p: &mut PktMut<'_>,
    phy: thalweg_buffer::SwIfIndex,
    to: &thalweg_device::IfRow,
    gone: thalweg_graph::ErrorCode,
) -> Verdict {
    if !to.present || p.push(p.stepped()).is_none() {
        return Verdict::drop(gone);
    }
    mark_group(p);
    p.set_tx_if(phy);
    Verdict::node(to.output)
}

/// Counts a frame to a group as such when it is sent.
pub(super) fn mark_group(p: &mut PktMut<'_>) {
    if p.data().first().is_some_and(|b| b & 1 != 0) {
        p.mark(Flags::MULTICAST);
    }
}
