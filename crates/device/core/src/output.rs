//! `<interface>-output`: output node of an interface.
//!
//! Reads: flags. Next: the first feature of the `interface-output` arc, or `<interface>-tx`.
//! Packets that need a checksum or segmentation the device cannot do pass through
//! [`crate::offload`] first.

use crate::interface::{IfTable, SwIfIndex};
use crate::offload;
use std::any::Any;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame};
use thalweg_graph::{Built, Kind, NodeCx, NodeDecl, Runner};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    DOWN: Error, 331, "interface is down";
    NO_BUFFERS: Error, 259, "no buffers to segment GSO";
    BAD_OFFLOAD: Error, 275, "invalid GSO request";
}

/// Declaration of every interface's output node.
pub static NODE: NodeDecl =
    NodeDecl { name: "interface-output", kind: Kind::Tx, errors: ERRORS, ..NodeDecl::DEFAULT };

pub(crate) fn build(sw_if: SwIfIndex, table: Arc<Snapshot<IfTable>>) -> Built {
    Built::runner(Output { sw_if, table, scratch: Vec::with_capacity(1 << 17) })
}

struct Output {
    sw_if: SwIfIndex,
    table: Arc<Snapshot<IfTable>>,
    /// A GSO packet in contiguous memory.
    scratch: Vec<u8>,
}

/// Counts broadcast and multicast packets. They were marked when flooded or originated (such as ARP
/// requests), so other packets are not inspected.
#[cold]
fn count_groups(cx: &NodeCx<'_>, frame: &Frame, sw_if: SwIfIndex) {
    let counters = cx.stats().interface(sw_if);
    for i in 0..frame.len() {
        let i = i as u8;
        if let Some(dst) = frame.data(i).first_chunk::<6>()
            && dst[0] & 1 != 0
            && frame.meta(i).flags().intersects(Flags::MULTICAST.union(Flags::LOCAL))
        {
            counters.sent_by_group(*dst, frame.total_len(i) as u64);
        }
    }
}

impl Runner for Output {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        let guard = cx.guard();
        let row = self.table.load(guard).get(self.sw_if);
        let (up, caps) = (row.admin_up, row.caps);
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "{} bytes", f.total_len(i));
        });
        if !up {
            cx.drop_frame(frame, DOWN);
            return;
        }
        if frame.flags().intersects(Flags::MULTICAST.union(Flags::LOCAL)) && row.mac != [0; 6] {
            count_groups(cx, &frame, self.sw_if);
        }
        if frame.flags().contains(Flags::OFFLOAD) {
            let sw_if = self.sw_if;
            if !offload::suits(&frame, caps) {
                let reasons = offload::Reasons { no_buffers: NO_BUFFERS, bad: BAD_OFFLOAD };
                offload::finish(cx, frame, caps, reasons, &mut self.scratch, |cx, f| {
                    cx.interface_output(f, sw_if);
                });
                return;
            }
            let (packets, bytes) = offload::more_on_wire(&frame);
            let stats = cx.stats().interface(sw_if);
            stats.tx_gso.add(packets);
            stats.tx_gso_bytes.add(bytes);
        }
        cx.interface_output(frame, self.sw_if);
    }

    fn message(&mut self, _cx: &mut NodeCx<'_>, _message: Box<dyn Any + Send>) {}
}
