//! Receipt: what the input nodes of all drivers do with frames that they have read.

use crate::{Framing, VnetHdr, offload};
use std::fmt::Write;
use thalweg_buffer::{Flags, Frame, Packet};
use thalweg_device::SwIfIndex;
use thalweg_device::offload::more_on_wire;
use thalweg_graph::NodeCx;
use thalweg_graph::trace::interface_token;

/// A receive queue, as traces name it.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    /// The driver's name in traces.
    pub driver: &'static str,
    /// The interface.
    pub sw_if: SwIfIndex,
    /// Number of the queue.
    pub queue: u32,
    /// Framing of its packets.
    pub framing: Framing,
}

/// Frames of a queue that are lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    /// The pool had no buffer for them.
    pub no_buffer: u64,
    /// Not frames that are accepted.
    pub bad: u64,
}

/// Puts a packet into a frame, with the offload work that the kernel has left.
///
/// # Errors
/// The packet, if the frame is full.
#[inline]
pub fn push(
    frame: &mut Frame,
    mut p: Packet,
    vnet: &VnetHdr,
    framing: Framing,
) -> Result<(), Packet> {
    if let Some(o) = offload::from_kernel(vnet, framing, p.data()) {
        p.meta_mut().offload = o;
        p.mark(Flags::OFFLOAD);
    }
    frame.push(p)
}

impl Receipt {
    /// Counts a frame and what was lost, and sends the frame into the graph.
    pub fn enter(self, cx: &mut NodeCx<'_>, frame: Box<Frame>, lost: Lost) {
        let s = cx.stats().interface(self.sw_if);
        if lost.no_buffer > 0 {
            s.rx_no_buf.add(lost.no_buffer);
        }
        if lost.bad > 0 {
            s.rx_error.add(lost.bad);
        }
        if frame.flags().contains(Flags::OFFLOAD) {
            let (packets, bytes) = more_on_wire(&frame, self.framing.into());
            s.rx_gso.add(packets);
            s.rx_gso_bytes.add(bytes);
        }
        cx.device_input(frame, self.sw_if, |f, i, out| self.trace(f, i, out));
    }

    fn trace(self, f: &Frame, i: u8, out: &mut dyn Write) {
        let Receipt { driver, sw_if, queue, framing } = self;
        let name = interface_token(sw_if);
        let _ = writeln!(out, "{driver}: {name} hw_if_index {sw_if} rx-queue {queue}");
        let m = f.meta(i);
        let _ = write!(out, "  frame length {}", f.total_len(i));
        if m.flags().contains(Flags::OFFLOAD) {
            let o = m.offload;
            if o.needs_csum {
                let _ = write!(out, ", partial checksum at {}+{}", o.csum_start, o.csum_offset);
            }
            if o.gso_size > 0 {
                let _ = write!(out, ", {:?} segments of {}", o.gso, o.gso_size);
            }
        }
        let _ = writeln!(out);
        let _ = match framing {
            Framing::Ethernet => thalweg_wire::fmt::ethernet(f.data(i), out, 2),
            Framing::Ip => thalweg_wire::fmt::ip(f.data(i), out, 2),
        };
    }
}
