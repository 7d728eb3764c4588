//! `host-<device>-tx`: passes frames to a host interface's transmit ring.
//!
//! Reads: offload work left to the device. Makes one system call per frame of packets, and one per
//! GSO packet of joined TCP segments.

use crate::ring::{SendError, TxRing};
use std::any::Any;
use thalweg_buffer::{Flags, Frame};
use thalweg_device::SwIfIndex;
use thalweg_device_linux::gro::GsoPacket;
use thalweg_device_linux::{Framing, VnetHdr, offload};
use thalweg_graph::{Built, ErrorCode, Kind, NodeCx, NodeDecl, Runner, Verdict};

thalweg_graph::errors! {
    FULL: Error, NO_BUFFER_SPACE, "tx ring full";
    LENGTH: Error, PKT_TOO_BIG, "invalid frame length";
    OFFLOAD: Error, IP_HEADER_CORRUPTED, "invalid offload request";
    REFUSED: Error, NO_BUFFER_SPACE, "frame rejected by device";
    DOWN: Error, DEV_READY, "device is down";
    JOINED: Info, UNKNOWN, "TCP segments coalesced (GRO)";
}

/// Declaration of the transmit node; instances are created with their interfaces.
pub static NODE: NodeDecl = NodeDecl {
    name: "af-packet-tx",
    kind: Kind::Tx,
    errors: ERRORS,
    build: |_| {
        Built::runner(AfPacketTx { sw_if: SwIfIndex(0), framing: Framing::Ethernet, ring: None })
    },
    ..NodeDecl::DEFAULT
};

/// Builds a worker's transmit node of one interface.
pub(crate) fn build(sw_if: SwIfIndex, framing: Framing, ring: Option<TxRing>) -> Built {
    Built::runner(AfPacketTx { sw_if, framing, ring: ring.map(Box::new) })
}

/// A message from the main thread: send by this ring from now on, or by none.
pub(crate) struct ToTx(pub(crate) Option<Box<TxRing>>);

struct AfPacketTx {
    sw_if: SwIfIndex,
    framing: Framing,
    ring: Option<Box<TxRing>>,
}

fn send(ring: &mut TxRing, framing: Framing, frame: &Frame, i: u8) -> Result<(), SendError> {
    let marks = frame.flags();
    let vnet = if marks.contains(Flags::OFFLOAD) && frame.meta(i).flags().contains(Flags::OFFLOAD) {
        offload::to_kernel(&frame.meta(i).offload, framing, frame.data(i))
    } else {
        VnetHdr::default()
    };
    if !marks.contains(Flags::CHAINED) {
        return ring.send(vnet, [frame.data(i)]);
    }
    ring.send(vnet, frame.segments(i))
}

fn reason(e: SendError) -> ErrorCode {
    match e {
        SendError::Full => FULL,
        SendError::TooLong { .. } | SendError::TooShort(_) => LENGTH,
        SendError::Offload(_) | SendError::NoOffload => OFFLOAD,
        SendError::Refused => REFUSED,
        SendError::Down => DOWN,
    }
}

/// Sends consecutive TCP segments from packet `i` on as one GSO packet; returns their number.
fn send_gso(ring: &mut TxRing, framing: Framing, frame: &Frame, i: usize) -> usize {
    if !ring.accepts_gso() {
        return 0;
    }
    let Some(gso) = GsoPacket::coalesce(framing, frame, i) else { return 0 };
    let count = gso.count;
    let sent = ring.send_gso(gso.vnet, gso.pieces(frame, i), count as u64, gso.first_len);
    if sent { count } else { 0 }
}

impl AfPacketTx {
    /// Makes the kernel send, and counts the frames that it has rejected, now or in between.
    fn kick(&mut self, cx: &mut NodeCx<'_>) {
        let Some(ring) = &mut self.ring else { return };
        if ring.kick() {
            cx.ask_again();
        }
        let lost = ring.take_lost();
        if lost.0 > 0 {
            cx.count_refused(self.sw_if, lost, REFUSED);
        }
    }
}

impl Runner for AfPacketTx {
    fn run(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        let framing = self.framing;
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "af_packet: frame length {}", f.total_len(i));
            let _ = match framing {
                Framing::Ethernet => thalweg_wire::fmt::packet(f.data(i), out, 2),
                Framing::Ip => thalweg_wire::fmt::ip(f.data(i), out, 2),
            };
        });
        let Some(ring) = &mut self.ring else {
            cx.drop_frame(frame, DOWN);
            return;
        };
        let (mut failed, mut joined) = ((0, 0), 0);
        let mut at = 0;
        while at < frame.len() {
            let sent = send_gso(ring, framing, &frame, at);
            if sent > 0 {
                joined += sent as u64;
                at += sent;
                continue;
            }
            let i = at as u8;
            at += 1;
            let mut done = send(ring, framing, &frame, i);
            if done == Err(SendError::Full) {
                ring.kick();
                done = send(ring, framing, &frame, i);
            }
            if let Err(e) = done {
                failed = (failed.0 + 1, failed.1 + frame.total_len(i) as u64);
                let (packet, _) = cx.take(frame.pkt(i));
                cx.send(packet, Verdict::drop(reason(e)));
            }
        }
        if joined > 0 {
            cx.count(JOINED, joined);
        }
        if failed.0 > 0 {
            cx.stats().interface(self.sw_if).refused(failed.0, failed.1);
            frame.compact(());
        }
        cx.sent_frame(frame);
        self.kick(cx);
    }

    fn again(&mut self, cx: &mut NodeCx<'_>) {
        self.kick(cx);
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        if let Ok(new) = message.downcast::<ToTx>()
            && let Some(old) = std::mem::replace(&mut self.ring, new.0)
        {
            // Unmapping and closing are left to the main thread.
            cx.discard(old);
        }
    }
}
