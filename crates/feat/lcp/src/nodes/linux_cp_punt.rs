//! `linux-cp-punt`: punted packets of an interface go to its twin, with the Ethernet header that
//! they came with and the TTL or hop limit untouched.
//!
//! Reads: rx interface, the Ethernet header before the packet. Writes: tx interface. Next: the
//! output of the twin's TAP. A class of packets that has used up its limit is dropped.

use crate::class::{self, Class};
use crate::gate::Gate;
use crate::header::{self, Receiver};
use crate::table::{self, Table, Twin};
use std::any::Any;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut, SwIfIndex};
use thalweg_device::link_header::Link;
use thalweg_device::{IfTable, Interfaces};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{
    BuildCx, Built, ErrorCode, FeatureDecl, Node, NodeCx, NodeDecl, Stage, Verdict,
};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ethernet::ethertype;

thalweg_graph::errors! {
    PUNT_RATE: Error, TRAFFIC_SHAPING, "punt-rate: class of packets above its limit";
    NO_TWIN: Error, DEV_READY, "interface has no twin any more";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for Ethernet header";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-punt",
    errors: ERRORS,
    feature: Some(FeatureDecl::on("ip4-punt").at(Stage::Admission)),
    also_on: &["ip6-punt"],
    build,
    ..NodeDecl::DEFAULT
};

/// Builds the node, also `linux-cp-punt-l3`.
pub(super) fn build(cx: &BuildCx<'_>) -> Built {
    Built::node(Punt(ToTwin::new(cx)))
}

/// Reasons to drop what is meant for a twin, of the calling node.
pub(super) struct Reasons {
    pub(super) rate: ErrorCode,
    pub(super) no_twin: ErrorCode,
    pub(super) no_room: ErrorCode,
}

/// State that all nodes on the way to twins share.
pub(super) struct ToTwin {
    pub(super) table: Arc<Snapshot<Table>>,
    pub(super) interfaces: Arc<Snapshot<IfTable>>,
    pub(super) gate: Gate,
}

impl ToTwin {
    pub(super) fn new(cx: &BuildCx<'_>) -> ToTwin {
        let (table, interfaces) = (table::of(cx), Interfaces::table(cx));
        ToTwin { table, interfaces, gate: Gate::new(cx) }
    }

    /// Sends a packet to the twin of the interface that has received it, with its Ethernet header
    /// if that carries such.
    pub(super) fn send(
        &mut self,
        cx: &NodeCx<'_>,
        p: &mut PktMut<'_>,
        (kind, class): (u16, Class),
        reasons: &Reasons,
    ) -> Verdict {
        let phy = p.rx_if();
        let Some(twin) = self.table.load(cx.guard()).twin(phy) else {
            return Verdict::drop(reasons.no_twin);
        };
        let interfaces = self.interfaces.load(cx.guard());
        let host = interfaces.get(twin.host);
        if !host.present {
            return Verdict::drop(reasons.no_twin);
        }
        if !self.gate.pass(cx, twin, class) {
            return Verdict::drop(reasons.rate);
        }
        if host.link == Link::Ethernet && !header::restore(p, receiver(phy, twin, interfaces), kind)
        {
            return Verdict::drop(reasons.no_room);
        }
        cx.stats().interface(phy).punt.add(1);
        p.set_tx_if(twin.host);
        Verdict::node(host.output)
    }

    /// Sends a copy of a packet to the twin of the interface that has received it; returns whether
    /// that was done.
    pub(super) fn send_copy(
        &mut self,
        cx: &mut NodeCx<'_>,
        p: &mut PktMut<'_>,
        (kind, class): (u16, Class),
    ) -> bool {
        let phy = p.rx_if();
        let Some(twin) = self.table.load(cx.guard()).twin(phy) else { return false };
        let interfaces = self.interfaces.load(cx.guard());
        let host = interfaces.get(twin.host);
        if !host.present || !self.gate.pass(cx, twin, class) || !cx.may_copy(p.meta_mut()) {
            return false;
        }
        let (bytes, len) = header::copy(p, receiver(phy, twin, interfaces), kind);
        let Some(mut copy) = cx.copy(p) else { return false };
        if host.link == Link::Ethernet {
            match copy.push(len) {
                Some(to) => to.copy_from_slice(&bytes[..len]),
                None => {
                    cx.consume(copy);
                    return false;
                }
            }
        }
        cx.stats().interface(phy).punt.add(1);
        copy.set_tx_if(twin.host);
        cx.send(copy, Verdict::node(host.output));
        true
    }
}

/// The interface that has received what goes to its twin.
fn receiver<'t>(phy: SwIfIndex, twin: &Twin, all: &'t IfTable) -> Receiver<'t> {
    Receiver { sw_if: phy, row: all.get(phy), all, has_no_device: twin.has_no_device }
}

/// Describes the way of a packet between an interface and its twin.
pub(super) fn trace(what: &str, frame: &Frame, i: u8, out: &mut dyn Write) {
    let (rx, tx) = (interface_token(frame.rx_if(i)), interface_token(frame.tx_if(i)));
    let _ = writeln!(out, "{what}: {rx} -> {tx}");
}

struct Punt(ToTwin);

impl Node for Punt {
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.0.gate.begin(cx);
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let is_ip6 = p.data().first().is_some_and(|b| b >> 4 == 6);
        let kind = if is_ip6 { ethertype::IPV6 } else { ethertype::IPV4 };
        let class = class::of_ip(p.data());
        let reasons = Reasons { rate: PUNT_RATE, no_twin: NO_TWIN, no_room: NO_ROOM };
        self.0.send(cx, &mut p, (kind, class), &reasons)
    }

    fn end(&mut self, cx: &mut NodeCx<'_>) {
        self.0.gate.end(cx);
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.0.gate.message(cx, message);
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        trace("lip-punt", frame, i, out);
    }
}
