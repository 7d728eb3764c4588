//! The way into an interface that has no device.
//!
//! All packets that an interface receives, but not from a device, come by here: frames out of a
//! pseudowire, frames between a bridge domain and its BVI, packets that a label or a route has an
//! interface receive. Each is counted once and passes the features of the interface once, and an
//! interface that is down takes none. The frames of a port are dealt to its sub-interfaces by
//! `ethernet-input`, to the same effect.

use crate::interface::{IfTable, Interfaces, SwIfIndex};
use std::any::Any;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, Iface, LOCAL_IF};
use thalweg_graph::{ArcId, BuildCx, Built, ErrorCode, NodeCx, Runner};
use thalweg_tables::snapshot::Snapshot;

/// Way in which packets enter an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Ethernet frames that the rx interface receives: they pass its features on `device-input`.
    Frames,
    /// IP packets that the rx interface receives without an Ethernet header: they go to the next
    /// node, which has the features of their protocol.
    Packets,
    /// Frames that leave a bridge domain for the router by its BVI, the tx interface, and go to the
    /// next node. Behind features, they have no tx interface.
    FromBridge,
    /// Frames that the router sends into a bridge domain by its BVI, the tx interface, which has
    /// counted them as sent; they go to the next node. Its features see both, and tell them apart
    /// by the tx interface. Frames of a sub-interface of the BVI are dropped for this reason: a
    /// bridge domain has no port for them.
    IntoBridge(ErrorCode),
}

/// The node of a way: splits frames by interface, and passes them on.
struct Entry {
    way: Way,
    table: Arc<Snapshot<IfTable>>,
    device_input: ArcId,
    /// Reason to drop what an interface that is down does not take.
    down: ErrorCode,
    describe: fn(&Frame, u8, &mut dyn Write),
}

/// Builds the node of a way, which drops for the reason `down` what an interface does not take, and
/// has packets described in traces.
pub fn build(
    cx: &BuildCx<'_>,
    way: Way,
    down: ErrorCode,
    describe: fn(&Frame, u8, &mut dyn Write),
) -> Built {
    let (table, device_input) = (Interfaces::table(cx), cx.arc("device-input"));
    Built::runner(Entry { way, table, device_input, down, describe })
}

impl IfTable {
    /// Returns whether an interface receives anything: it is up, and so is the one that it is a
    /// part of.
    #[inline]
    fn takes(&self, sw_if: SwIfIndex) -> bool {
        let row = self.get(sw_if);
        row.admin_up && (row.parent == SwIfIndex(0) || self.get(row.parent).admin_up)
    }
}

impl Entry {
    /// Returns the interfaces that the packets of a frame enter.
    fn entered(&self, frame: &Frame) -> Iface {
        match self.way {
            Way::Frames | Way::Packets => frame.rx(),
            Way::FromBridge | Way::IntoBridge(_) => frame.tx(),
        }
    }

    /// Returns the one of a packet.
    fn entered_by(&self, frame: &Frame, i: u8) -> SwIfIndex {
        match self.way {
            Way::Frames | Way::Packets => frame.rx_if(i),
            Way::FromBridge | Way::IntoBridge(_) => frame.tx_if(i),
        }
    }

    /// Passes packets of one interface on.
    fn enter(&self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>, sw_if: SwIfIndex) {
        frame.set_rx(sw_if);
        let table = self.table.load(cx.guard());
        if !table.takes(sw_if) {
            cx.drop_frame(frame, self.down);
            return;
        }
        match self.way {
            Way::Frames => cx.enter_interface(frame, sw_if),
            Way::Packets => {
                cx.count_input_past_taps(sw_if, frame.len() as u64, frame.bytes());
                cx.enqueue_next(frame, 0);
            }
            Way::FromBridge => {
                frame.set_tx(LOCAL_IF);
                cx.interface_input(&mut frame, sw_if);
                self.to_features(cx, frame, sw_if);
            }
            Way::IntoBridge(stray) if table.get(sw_if).parent != SwIfIndex(0) => {
                cx.drop_frame(frame, stray);
            }
            Way::IntoBridge(_) => {
                frame.set_tx(sw_if);
                self.to_features(cx, frame, sw_if);
            }
        }
    }

    /// Passes packets on to the features of an interface, or to the next node if there are none.
    fn to_features(&self, cx: &mut NodeCx<'_>, frame: Box<Frame>, sw_if: SwIfIndex) {
        match cx.arcs().first(self.device_input, sw_if) {
            Some(feature) => cx.enqueue(frame, feature),
            None => cx.enqueue_next(frame, 0),
        }
    }
}

impl Runner for Entry {
    fn run(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        cx.trace_frame(&frame, self.describe);
        if let Iface::Uniform(sw_if) = self.entered(&frame) {
            return self.enter(cx, frame, sw_if);
        }
        let mut at = 0;
        while at < frame.len() {
            let sw_if = self.entered_by(&frame, at as u8);
            let mut run = cx.new_frame();
            while at < frame.len() && self.entered_by(&frame, at as u8) == sw_if {
                let (packet, _) = cx.take(frame.pkt(at as u8));
                // A run is no longer than the frame that it is a part of.
                if let Err(packet) = run.push(packet) {
                    cx.consume(packet);
                }
                at += 1;
            }
            self.enter(cx, run, sw_if);
        }
        frame.compact(());
        cx.put_frame(frame);
    }

    fn message(&mut self, _cx: &mut NodeCx<'_>, _message: Box<dyn Any + Send>) {}
}
