//! `pcap`: copies packets into a capture.
//!
//! A tap on `device-input`, `interface-output` and `error-drop`, enabled only during a capture.
//! Reads packet bytes and lengths, and the stripped headers of dropped packets. Writes nothing.

use crate::Plan;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use thalweg_buffer::{Frame, Iface};
use thalweg_device::SwIfIndex;
use thalweg_device::link_header::stepped_over;
use thalweg_graph::{Built, ERROR_DROP, FeatureDecl, Kind, NodeDecl, Tap, TapCx};

thalweg_graph::errors! {
    CAPTURED: Info, 256, "packets captured";
    FULL: Info, 256, "packets not captured: capture full";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "pcap",
    kind: Kind::Tap,
    errors: ERRORS,
    feature: Some(FeatureDecl { arc: "device-input", before: &[], after: &[] }),
    also_on: &["interface-output", "error-drop"],
    build: |_| Built::tap(PcapTap(None)),
    ..NodeDecl::DEFAULT
};

/// Record header of a packet: time in ticks, length, bytes kept.
const HEAD: usize = 16;

/// Messages from the main thread.
pub(crate) enum TapMessage {
    /// Capture into this buffer.
    Begin(Box<Buffer>),
    /// Return the buffer.
    End(SyncSender<Box<Buffer>>),
}

/// A worker's part of a capture.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Allocated to its final size.
    bytes: Vec<u8>,
    used: usize,
    /// Bytes kept per packet.
    snap: usize,
    left: u32,
    sw_if: Option<SwIfIndex>,
    taken: Arc<AtomicU64>,
}

/// A captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Captured<'b> {
    /// Time in ticks.
    pub(crate) at: u64,
    /// Length of the whole packet.
    pub(crate) length: u32,
    /// Bytes kept.
    pub(crate) bytes: &'b [u8],
}

impl Buffer {
    /// Memory of a capture on one worker in bytes.
    pub(crate) fn size(plan: &Plan) -> u64 {
        u64::from(plan.packets) * (HEAD as u64 + u64::from(plan.bytes))
    }

    pub(crate) fn new(plan: &Plan, taken: Arc<AtomicU64>) -> Buffer {
        Buffer {
            bytes: vec![0; Buffer::size(plan) as usize],
            used: 0,
            snap: plan.bytes as usize,
            left: plan.packets,
            sw_if: plan.sw_if,
            taken,
        }
    }

    /// Appends a packet that consists of these parts.
    fn add<'a>(&mut self, at: u64, length: u32, parts: impl Iterator<Item = &'a [u8]>) {
        let start = self.used + HEAD;
        let mut end = start;
        for part in parts {
            let n = part.len().min(start + self.snap - end);
            self.bytes[end..end + n].copy_from_slice(&part[..n]);
            end += n;
        }
        let head = &mut self.bytes[self.used..start];
        head[..8].copy_from_slice(&at.to_ne_bytes());
        head[8..12].copy_from_slice(&length.to_ne_bytes());
        head[12..].copy_from_slice(&((end - start) as u32).to_ne_bytes());
        self.used = end;
        self.left -= 1;
        self.taken.store(self.taken.load(Relaxed) + 1, Relaxed);
    }

    /// Captured packets, in order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = Captured<'_>> {
        let mut rest = &self.bytes[..self.used];
        std::iter::from_fn(move || {
            let (head, tail) = rest.split_first_chunk::<HEAD>()?;
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *head;
            let kept = u32::from_ne_bytes([m, n, o, p]) as usize;
            let (bytes, tail) = tail.split_at_checked(kept)?;
            rest = tail;
            let at = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
            Some(Captured { at, length: u32::from_ne_bytes([i, j, k, l]), bytes })
        })
    }
}

struct PcapTap(Option<Box<Buffer>>);

impl Tap for PcapTap {
    fn frame(&mut self, cx: &mut TapCx, frame: &mut Frame, on: Iface) {
        let Some(buffer) = &mut self.0 else { return };
        let (dropped, at) = (cx.arc() == ERROR_DROP, cx.now());
        let (mut taken, mut refused) = (0, 0);
        for i in 0..frame.len() {
            let i = i as u8;
            // A mixed frame of dropped packets also holds packets of other interfaces.
            let other = |one| matches!(on, Iface::Mixed) && frame.rx_if(i) != one;
            if buffer.sw_if.is_some_and(other) {
                continue;
            }
            if buffer.left == 0 {
                refused += 1;
                continue;
            }
            let before = if dropped { frame.before(i, stepped_over(frame, i)) } else { &[] };
            let length = (before.len() + frame.total_len(i)) as u32;
            buffer.add(at, length, std::iter::once(before).chain(frame.segments(i)));
            taken += 1;
        }
        cx.count(CAPTURED, taken);
        cx.count(FULL, refused);
    }

    fn message(&mut self, message: Box<dyn Any + Send>) {
        let Ok(message) = message.downcast::<TapMessage>() else { return };
        match *message {
            TapMessage::Begin(buffer) => self.0 = Some(buffer),
            TapMessage::End(to) => {
                if let Some(buffer) = self.0.take() {
                    // The channel has room for one buffer per worker.
                    let _ = to.try_send(buffer);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_back_as_they_were_kept() {
        let plan = Plan { packets: 3, bytes: 32, ..Plan::default() };
        let mut buffer = Buffer::new(&plan, Arc::default());
        let long = [7; 100];
        buffer.add(5, 3, [&[1, 2][..], &[3]].into_iter());
        buffer.add(6, 100, [&long[..20], &long[20..]].into_iter());
        buffer.add(7, 0, std::iter::empty());
        assert_eq!((buffer.left, buffer.taken.load(Relaxed)), (0, 3));
        let all: Vec<_> = buffer.packets().collect();
        assert_eq!(all[0], Captured { at: 5, length: 3, bytes: &[1, 2, 3] });
        assert_eq!(all[1], Captured { at: 6, length: 100, bytes: &long[..32] });
        assert_eq!(all[2], Captured { at: 7, length: 0, bytes: &[] });
    }
}
