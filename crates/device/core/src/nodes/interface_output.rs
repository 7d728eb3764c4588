//! `interface-output`: output node of all interfaces without a device, and of their
//! sub-interfaces. An interface with a device has one of its own, `<interface>-output`, for itself
//! and its sub-interfaces.
//!
//! Reads: tx interface, in a node of one interface only if that has sub-interfaces; flags. Next:
//! the first feature of the `interface-output` arc, or the interface's transmit node. Packets that
//! need a checksum or segmentation the device cannot do pass through [`crate::offload`] first.

use crate::interface::{IfRow, IfTable, Interfaces, SwIfIndex};
use crate::offload;
use std::any::Any;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, Iface, LOCAL_IF};
use thalweg_graph::stats::IfStats;
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, Kind, NodeCx, NodeDecl, PerWorker, Runner, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::errors! {
    DOWN: Error, DEV_READY, "interface is down";
    NO_BUFFERS: Error, NO_BUFFER_SPACE, "no buffers to segment GSO";
    BAD_OFFLOAD: Error, IP_HEADER_CORRUPTED, "invalid GSO request";
}

/// The declaration, also of the output nodes of interfaces with a device.
pub static NODE: NodeDecl = NodeDecl {
    name: "interface-output",
    kind: Kind::Tx,
    errors: ERRORS,
    build: |cx| build(None, Interfaces::table(cx), cx.control.per_worker()),
    ..NodeDecl::DEFAULT
};

/// Memory of a worker for a GSO packet in one piece. A message brings it, so that no worker has to
/// allocate.
#[derive(Default)]
pub(crate) struct Scratch(Vec<u8>);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch(Vec::with_capacity(1 << 17))
    }
}

/// Makes the node of an interface with a device, or of all interfaces without.
pub(crate) fn build(
    only: Option<SwIfIndex>,
    table: Arc<Snapshot<IfTable>>,
    scratch: PerWorker<Scratch>,
) -> Built {
    Built::runner(Output { only, table, scratch })
}

struct Output {
    /// The interface with a device that it belongs to.
    only: Option<SwIfIndex>,
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

    /// Sends a frame of an interface that may have sub-interfaces.
    #[inline]
    fn of_port(&self, cx: &mut NodeCx<'_>, frame: Box<Frame>, port: SwIfIndex) {
        let row = self.table.load(cx.guard()).get(port);
        if !row.admin_up {
            cx.drop_frame(frame, DOWN);
            return;
        }
        if row.has_subs {
            self.with_subs(cx, frame, (port, row));
            return;
        }
        if frame.flags().intersects(Flags::MULTICAST.union(Flags::LOCAL)) && !row.mac.is_zero() {
            count_groups(&frame, &[cx.stats().interface(port)]);
        }
        if frame.flags().contains(Flags::OFFLOAD) {
            let send = |cx: &mut NodeCx<'_>, f| cx.interface_output(f, port);
            self.offload(cx, frame, row, &[port], send);
            return;
        }
        cx.interface_output(frame, port);
    }

    /// Sends a frame of several interfaces without a device.
    #[inline(never)]
    fn of_several(&self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        let table = self.table.load(cx.guard());
        let is_plain = |tx_if: SwIfIndex| {
            let row = table.get(tx_if);
            row.admin_up && !row.has_subs && row.parent == LOCAL_IF
        };
        if frame.tx_runs().all(|(tx_if, _)| is_plain(tx_if)) && !has_to_part(cx, &frame) {
            cx.interfaces_output(frame, None);
        } else {
            one_by_one(cx, frame, |cx, run, tx_if| self.of_port(cx, run, port_of(table, tx_if)));
        }
    }

    /// Sends a frame of an interface with sub-interfaces.
    #[inline(never)]
    fn with_subs(
        &self,
        cx: &mut NodeCx<'_>,
        mut frame: Box<Frame>,
        (port, row): (SwIfIndex, &IfRow),
    ) {
        let table = self.table.load(cx.guard());
        // The sub-interface that a packet leaves by; the interface itself if the packet leaves by
        // no sub-interface.
        let owner = |tx_if| if table.get(tx_if).parent == port { tx_if } else { port };
        if let Iface::Uniform(tx_if) = frame.tx() {
            return self.of_one(cx, frame, (port, row), owner(tx_if));
        }
        let (mut all_up, mut last) = (true, (port, port));
        for i in 0..frame.len() {
            let mut p = frame.pkt(i as u8);
            if p.tx_if() != last.0 {
                last = (p.tx_if(), owner(p.tx_if()));
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
        if frame.is_empty() {
            cx.put_frame(frame);
        } else if has_to_part(cx, &frame) {
            one_by_one(cx, frame, |cx, run, tx_if| self.of_one(cx, run, (port, row), tx_if));
        } else {
            cx.interfaces_output(frame, Some(port));
        }
    }

    /// Sends a frame of a sub-interface, or of the interface itself.
    fn of_one(
        &self,
        cx: &mut NodeCx<'_>,
        mut frame: Box<Frame>,
        (port, row): (SwIfIndex, &IfRow),
        tx_if: SwIfIndex,
    ) {
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
            let send = |cx: &mut NodeCx<'_>, f| cx.interfaces_output(f, Some(port));
            self.offload(cx, frame, row, counted, send);
        } else {
            cx.interfaces_output(frame, Some(port));
        }
    }
}

/// The interface whose sub-interface packets leave by, or that itself.
fn port_of(table: &IfTable, tx_if: SwIfIndex) -> SwIfIndex {
    match table.get(tx_if).parent {
        LOCAL_IF => tx_if,
        parent => parent,
    }
}

/// Returns whether a frame of several interfaces has to be parted by interface: offloads are
/// counted, samples completed, and taps called for one interface at a time.
fn has_to_part(cx: &NodeCx<'_>, frame: &Frame) -> bool {
    // An interface may have several runs, so that only the frame's length bounds its packets.
    let n = frame.len() as u64;
    frame.flags().intersects(Flags::OFFLOAD.union(Flags::MULTICAST).union(Flags::LOCAL))
        || frame.tx_runs().any(|(tx_if, _)| cx.output_taps_wait(tx_if, n))
}

/// Sends a frame of several interfaces in one frame for each run of packets.
#[cold]
fn one_by_one(
    cx: &mut NodeCx<'_>,
    mut frame: Box<Frame>,
    mut send: impl FnMut(&mut NodeCx<'_>, Box<Frame>, SwIfIndex),
) {
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
        send(cx, run, tx_if);
    }
    frame.compact(());
    cx.put_frame(frame);
}

impl Runner for Output {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        cx.trace_frame(&frame, |f, i, out| match self.only {
            Some(_) => drop(writeln!(out, "{} bytes", f.total_len(i))),
            None => {
                let tx_if = interface_token(f.tx_if(i));
                let _ = writeln!(out, "tx {tx_if}, {} bytes", f.total_len(i));
            }
        });
        match (self.only, frame.tx()) {
            (Some(port), _) => self.of_port(cx, frame, port),
            (None, Iface::Uniform(tx_if)) => {
                let port = port_of(self.table.load(cx.guard()), tx_if);
                self.of_port(cx, frame, port);
            }
            (None, Iface::Mixed) => self.of_several(cx, frame),
        }
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        if let Ok(scratch) = message.downcast::<Scratch>() {
            cx.put_local(self.scratch, scratch);
        }
    }
}
