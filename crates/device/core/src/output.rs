//! `<interface>-output`: output node of an interface, and of its sub-interfaces.
//!
//! Reads: tx interface if the interface has sub-interfaces; flags. Next: the first feature of the
//! `interface-output` arc, or `<interface>-tx`. Packets that need a checksum or segmentation the
//! device cannot do pass through [`crate::offload`] first.

use crate::interface::{IfRow, IfTable, SwIfIndex};
use crate::offload;
use std::any::Any;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, Iface};
use thalweg_graph::stats::IfStats;
use thalweg_graph::{Built, Kind, NodeCx, NodeDecl, PerWorker, Runner, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    DOWN: Error, 331, "interface is down";
    NO_BUFFERS: Error, 259, "no buffers to segment GSO";
    BAD_OFFLOAD: Error, 275, "invalid GSO request";
}

/// Declaration of every interface's output node.
pub static NODE: NodeDecl =
    NodeDecl { name: "interface-output", kind: Kind::Tx, errors: ERRORS, ..NodeDecl::DEFAULT };

/// Memory of a worker for a GSO packet in one piece. It comes with a message, so that no worker has
/// to allocate it.
#[derive(Default)]
pub(crate) struct Scratch(Vec<u8>);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch(Vec::with_capacity(1 << 17))
    }
}

pub(crate) fn build(
    sw_if: SwIfIndex,
    table: Arc<Snapshot<IfTable>>,
    scratch: PerWorker<Scratch>,
) -> Built {
    Built::runner(Output { sw_if, table, scratch })
}

struct Output {
    sw_if: SwIfIndex,
    table: Arc<Snapshot<IfTable>>,
    scratch: PerWorker<Scratch>,
}

/// Counts broadcast and multicast packets. They were marked when flooded or originated (such as ARP
/// requests), so other packets are not inspected.
#[cold]
fn count_groups(frame: &Frame, counters: &[&IfStats]) {
    for i in 0..frame.len() {
        let i = i as u8;
        if let Some(dst) = frame.data(i).first_chunk::<6>()
            && dst[0] & 1 != 0
            && frame.meta(i).flags().intersects(Flags::MULTICAST.union(Flags::LOCAL))
        {
            counters.iter().for_each(|c| c.sent_by_group(*dst, frame.total_len(i) as u64));
        }
    }
}

impl Output {
    /// Sends a frame that needs offloads: by the device if it can, else without them. `send` passes
    /// the result on.
    #[inline]
    fn offload(
        &self,
        cx: &mut NodeCx<'_>,
        frame: Box<Frame>,
        row: &IfRow,
        counted: &[SwIfIndex],
        mut send: impl FnMut(&mut NodeCx<'_>, Box<Frame>),
    ) {
        if !offload::suits(&frame, row.caps, row.link) {
            let reasons = offload::Reasons { no_buffers: NO_BUFFERS, bad: BAD_OFFLOAD };
            let mut scratch = cx.take_local(self.scratch).unwrap_or_default();
            offload::finish(cx, frame, (row.caps, row.link), reasons, &mut scratch.0, send);
            cx.put_local(self.scratch, scratch);
            return;
        }
        let (packets, bytes) = offload::more_on_wire(&frame, row.link);
        for sw_if in counted {
            let stats = cx.stats().interface(*sw_if);
            stats.tx_gso.add(packets);
            stats.tx_gso_bytes.add(bytes);
        }
        send(cx, frame);
    }

    /// Returns the sub-interface that a packet leaves by; the interface itself if it is none of its
    /// own.
    fn owner(&self, table: &IfTable, tx_if: SwIfIndex) -> SwIfIndex {
        if table.get(tx_if).parent == self.sw_if { tx_if } else { self.sw_if }
    }

    /// Sends a frame of an interface with sub-interfaces.
    #[inline(never)]
    fn with_subs(&self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>, row: &IfRow) {
        let table = self.table.load(cx.guard());
        if let Iface::Uniform(tx_if) = frame.tx() {
            return self.of_one(cx, frame, row, self.owner(table, tx_if));
        }
        let (mut all_up, mut last) = (true, (self.sw_if, self.sw_if));
        for i in 0..frame.len() {
            let mut p = frame.pkt(i as u8);
            if p.tx_if() != last.0 {
                last = (p.tx_if(), self.owner(table, p.tx_if()));
                all_up &= table.get(last.1).admin_up;
            }
            p.set_tx_if(last.1);
        }
        if !all_up {
            for i in 0..frame.len() {
                let p = frame.pkt(i as u8);
                if !table.get(p.tx_if()).admin_up {
                    let (packet, _) = cx.take(p);
                    cx.send(packet, Verdict::drop(DOWN));
                }
            }
            frame.compact(());
        }
        // Offloads are counted, samples completed, and taps called for one interface at a time.
        let unusual = Flags::OFFLOAD.union(Flags::MULTICAST).union(Flags::LOCAL);
        let taps = || frame.tx_runs().any(|(tx_if, n)| cx.output_taps_wait(tx_if, n as u64));
        if frame.is_empty() {
            cx.put_frame(frame);
        } else if frame.flags().intersects(unusual) || taps() {
            self.one_by_one(cx, frame, row);
        } else {
            cx.interfaces_output(frame, self.sw_if);
        }
    }

    /// Sends a frame of several interfaces in one frame for each run of packets.
    #[cold]
    fn one_by_one(&self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>, row: &IfRow) {
        let mut at = 0;
        while at < frame.len() {
            let tx_if = frame.tx_if(at as u8);
            let mut run = cx.new_frame();
            while at < frame.len() && frame.tx_if(at as u8) == tx_if {
                let (packet, _) = cx.take(frame.pkt(at as u8));
                // A run is no longer than the frame that it is a part of.
                if let Err(packet) = run.push(packet) {
                    cx.consume(packet);
                }
                at += 1;
            }
            self.of_one(cx, run, row, tx_if);
        }
        frame.compact(());
        cx.put_frame(frame);
    }

    /// Sends a frame of a sub-interface, or of the interface itself.
    fn of_one(&self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>, row: &IfRow, tx_if: SwIfIndex) {
        let port = self.sw_if;
        if !self.table.load(cx.guard()).get(tx_if).admin_up {
            cx.drop_frame(frame, DOWN);
            return;
        }
        frame.set_tx(tx_if);
        let counted = if tx_if == port { &[port][..] } else { &[port, tx_if] };
        if frame.flags().intersects(Flags::MULTICAST.union(Flags::LOCAL)) {
            let stats = cx.stats();
            let both = [stats.interface(port), stats.interface(tx_if)];
            count_groups(&frame, &both[..counted.len()]);
        }
        if frame.flags().contains(Flags::OFFLOAD) {
            self.offload(cx, frame, row, counted, |cx, frame| cx.interfaces_output(frame, port));
        } else {
            cx.interfaces_output(frame, port);
        }
    }
}

impl Runner for Output {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        let guard = cx.guard();
        let row = self.table.load(guard).get(self.sw_if);
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "{} bytes", f.total_len(i));
        });
        if !row.admin_up {
            cx.drop_frame(frame, DOWN);
            return;
        }
        if row.has_subs {
            self.with_subs(cx, frame, row);
            return;
        }
        let sw_if = self.sw_if;
        if frame.flags().intersects(Flags::MULTICAST.union(Flags::LOCAL)) && !row.mac.is_zero() {
            count_groups(&frame, &[cx.stats().interface(sw_if)]);
        }
        if frame.flags().contains(Flags::OFFLOAD) {
            let send = |cx: &mut NodeCx<'_>, f| cx.interface_output(f, sw_if);
            self.offload(cx, frame, row, &[sw_if], send);
            return;
        }
        cx.interface_output(frame, sw_if);
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        if let Ok(scratch) = message.downcast::<Scratch>() {
            cx.put_local(self.scratch, scratch);
        }
    }
}
