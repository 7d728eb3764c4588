//! `<tap>-tx`: passes frames to a TAP or TUN device.
//!
//! Reads: offload work left to the kernel. Makes one system call per packet, and one per GSO packet
//! of joined TCP segments.

use crate::sys::Tun;
use rustix::io::Errno;
use std::any::Any;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use thalweg_buffer::{Flags, Frame};
use thalweg_device::SwIfIndex;
use thalweg_device_linux::gro::GsoPacket;
use thalweg_device_linux::{Framing, VnetHdr, offload};
use thalweg_graph::{Built, ErrorCode, Kind, NodeCx, NodeDecl, Runner, Verdict};

thalweg_graph::errors! {
    FULL: Error, NO_BUFFER_SPACE, "the kernel has no memory for a frame";
    LENGTH: Error, PKT_TOO_BIG, "invalid frame length";
    OFFLOAD: Error, IP_HEADER_CORRUPTED, "invalid offload request";
    REFUSED: Error, NO_BUFFER_SPACE, "frame rejected by device";
    DOWN: Error, DEV_READY, "device is down";
    JOINED: Info, UNKNOWN, "TCP segments coalesced (GRO)";
}

/// Declaration of the transmit node; instances are created with their interfaces.
pub static NODE: NodeDecl = NodeDecl {
    name: "tap-tx",
    kind: Kind::Tx,
    errors: ERRORS,
    build: |_| build(SwIfIndex(0), Framing::Ethernet, false, None, Arc::default()),
    ..NodeDecl::DEFAULT
};

/// Most pieces of a frame: in the smallest buffers, and the header.
const PIECES: usize = 260;
const ETHERNET_HDR: usize = 14;
/// Room beyond the MTU for two VLAN tags.
const TAGS: usize = 2 * 4;

/// Builds a worker's transmit node of one interface. The MTU is the main thread's to change.
pub(crate) fn build(
    sw_if: SwIfIndex,
    framing: Framing,
    joins: bool,
    tun: Option<Arc<Tun>>,
    mtu: Arc<AtomicU32>,
) -> Built {
    Built::runner(TapTx { sw_if, framing, joins, tun, mtu })
}

/// A message from the main thread: send by this queue from now on, or by none.
pub(crate) struct ToTx(pub(crate) Option<Arc<Tun>>);

struct TapTx {
    sw_if: SwIfIndex,
    framing: Framing,
    /// TCP segments are joined.
    joins: bool,
    tun: Option<Arc<Tun>>,
    mtu: Arc<AtomicU32>,
}

/// Sends a frame of many pieces, or as many as a system call takes.
fn write_pieces<'p>(
    tun: &Tun,
    vnet: &[u8; VnetHdr::LEN],
    pieces: impl Iterator<Item = &'p [u8]>,
) -> Result<(), Errno> {
    let mut all: [IoSlice<'_>; PIECES] = std::array::from_fn(|_| IoSlice::new(&[]));
    all[0] = IoSlice::new(vnet);
    let mut count = 1;
    for piece in pieces {
        let Some(to) = all.get_mut(count) else { return Err(Errno::MSGSIZE) };
        *to = IoSlice::new(piece);
        count += 1;
    }
    tun.write(&all[..count]).map(drop)
}

fn reason(e: Errno, offload: bool) -> ErrorCode {
    match e {
        Errno::AGAIN | Errno::NOMEM | Errno::NOBUFS => FULL,
        // The device is down, was deleted, or is no queue's any more.
        Errno::IO | Errno::BADFD | Errno::BADF | Errno::NODEV => DOWN,
        Errno::INVAL if offload => OFFLOAD,
        Errno::INVAL | Errno::MSGSIZE => LENGTH,
        _ => REFUSED,
    }
}

impl TapTx {
    fn send(&self, tun: &Tun, frame: &Frame, i: u8) -> Result<(), ErrorCode> {
        let marks = frame.flags();
        let has_work =
            marks.contains(Flags::OFFLOAD) && frame.meta(i).flags().contains(Flags::OFFLOAD);
        let vnet = match has_work {
            true => offload::to_kernel(&frame.meta(i).offload, self.framing, frame.data(i)),
            false => VnetHdr::default(),
        };
        let len = frame.total_len(i);
        let (least, link) = match self.framing {
            Framing::Ethernet => (ETHERNET_HDR, ETHERNET_HDR + TAGS),
            Framing::Ip => (1, 0),
        };
        let most = self.mtu.load(Ordering::Relaxed) as usize + link;
        if len < least || len > most && !vnet.is_gso() {
            return Err(LENGTH);
        }
        if has_work && vnet.check(len).is_err() {
            return Err(OFFLOAD);
        }
        let header = vnet.to_bytes();
        let sent = if marks.contains(Flags::CHAINED) {
            write_pieces(tun, &header, frame.segments(i))
        } else {
            tun.write(&[IoSlice::new(&header), IoSlice::new(frame.data(i))]).map(drop)
        };
        sent.map_err(|e| reason(e, has_work))
    }

    /// Sends consecutive TCP segments from packet `i` on as one GSO packet; returns their number.
    fn send_joined(&self, tun: &Tun, frame: &Frame, i: usize) -> usize {
        if !self.joins {
            return 0;
        }
        let Some(gso) = GsoPacket::coalesce(self.framing, frame, i) else { return 0 };
        let sent = write_pieces(tun, &gso.vnet.to_bytes(), gso.pieces(frame, i));
        if sent.is_ok() { gso.count } else { 0 }
    }
}

impl Runner for TapTx {
    fn run(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) {
        let framing = self.framing;
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "tap: frame length {}", f.total_len(i));
            let _ = match framing {
                Framing::Ethernet => thalweg_wire::fmt::packet(f.data(i), out, 2),
                Framing::Ip => thalweg_wire::fmt::ip(f.data(i), out, 2),
            };
        });
        // Taken out for a while: a clone would write to a line that other workers read.
        let Some(tun) = self.tun.take() else {
            cx.drop_frame(frame, DOWN);
            return;
        };
        let (mut failed, mut joined) = ((0, 0), 0);
        let mut at = 0;
        while at < frame.len() {
            let sent = self.send_joined(&tun, &frame, at);
            if sent > 0 {
                joined += sent as u64;
                at += sent;
                continue;
            }
            let i = at as u8;
            at += 1;
            if let Err(why) = self.send(&tun, &frame, i) {
                failed = (failed.0 + 1, failed.1 + frame.total_len(i) as u64);
                let (packet, _) = cx.take(frame.pkt(i));
                cx.send(packet, Verdict::drop(why));
            }
        }
        self.tun = Some(tun);
        if joined > 0 {
            cx.count(JOINED, joined);
        }
        if failed.0 > 0 {
            cx.stats().interface(self.sw_if).refused(failed.0, failed.1);
            frame.compact(());
        }
        cx.sent_frame(frame);
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        if let Ok(new) = message.downcast::<ToTx>()
            && let Some(old) = std::mem::replace(&mut self.tun, new.0)
        {
            // Closing is left to the main thread.
            cx.discard(Box::new(old));
        }
    }
}
