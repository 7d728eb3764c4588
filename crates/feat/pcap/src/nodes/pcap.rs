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
use thalweg_device::link_header::{Link, of_dropped, stepped_over};
use thalweg_graph::filter::{ByteFilter, MAX_BYTES};
use thalweg_graph::{Built, ERROR_DROP, FeatureDecl, INTERFACE_OUTPUT, Kind, NodeDecl, Tap, TapCx};

thalweg_graph::errors! {
    CAPTURED: Info, UNKNOWN, "packets captured";
    FULL: Info, UNKNOWN, "packets not captured: capture full";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "pcap",
    kind: Kind::Tap,
    errors: ERRORS,
    feature: Some(FeatureDecl::on("device-input")),
    also_on: &["interface-output", "error-drop"],
    build: |_| Built::tap(PcapTap::default()),
    ..NodeDecl::DEFAULT
};

/// Record header of a packet: time in ticks, length, bytes kept.
const HEAD: usize = 16;

/// Messages from the main thread.
pub(crate) enum TapMessage {
    /// Capture into this buffer.
    Begin(Box<Buffer>),
    /// Packets of this interface begin with their IP header.
    Ip(SwIfIndex),
    /// The interface is new: settings of an older one with its index do not hold.
    New(SwIfIndex),
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
    error: Option<u32>,
    filter: Option<Arc<ByteFilter>>,
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
    /// True if the packet begins with its IP header.
    pub(crate) bare: bool,
}

/// Marks a packet without a link header, in the word that says how many of its bytes are kept.
const BARE: u32 = 1 << 31;

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
            error: plan.error,
            filter: plan.filter.clone(),
            taken,
        }
    }

    /// Appends a packet that consists of these parts.
    fn add<'a>(&mut self, at: u64, length: u32, link: Link, parts: impl Iterator<Item = &'a [u8]>) {
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
        let bare = if link == Link::Ip { BARE } else { 0 };
        head[12..].copy_from_slice(&((end - start) as u32 | bare).to_ne_bytes());
        self.used = end;
        self.left -= 1;
        self.taken.store(self.taken.load(Relaxed) + 1, Relaxed);
    }

    /// Returns whether the filter takes a packet; `before` are its bytes before the frame's.
    fn wants(&self, before: &[u8], frame: &Frame, i: u8) -> bool {
        let Some(filter) = &self.filter else { return true };
        let (mut bytes, mut n) = ([0; MAX_BYTES], 0);
        for part in std::iter::once(before).chain(frame.segments(i)) {
            let len = part.len().min(MAX_BYTES - n);
            bytes[n..n + len].copy_from_slice(&part[..len]);
            n += len;
        }
        filter.matches(&bytes[..n])
    }

    /// Captured packets, in order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = Captured<'_>> {
        let mut rest = &self.bytes[..self.used];
        std::iter::from_fn(move || {
            let (head, tail) = rest.split_first_chunk::<HEAD>()?;
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *head;
            let kept = u32::from_ne_bytes([m, n, o, p]);
            let (bytes, tail) = tail.split_at_checked((kept & !BARE) as usize)?;
            rest = tail;
            let at = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
            let (length, bare) = (u32::from_ne_bytes([i, j, k, l]), kept & BARE != 0);
            Some(Captured { at, length, bytes, bare })
        })
    }
}

#[derive(Default)]
struct PcapTap {
    buffer: Option<Box<Buffer>>,
    /// Interfaces whose packets begin with their IP header.
    ip: Vec<SwIfIndex>,
}

impl Tap for PcapTap {
    fn frame(&mut self, cx: &mut TapCx, frame: &mut Frame, on: Iface) {
        let Some(buffer) = &mut self.buffer else { return };
        let of =
            |sw_if: SwIfIndex| if self.ip.contains(&sw_if) { Link::Ip } else { Link::Ethernet };
        let sent = cx.arc() == INTERFACE_OUTPUT;
        let (dropped, at) = (cx.arc() == ERROR_DROP, cx.now());
        let (mut taken, mut refused) = (0, 0);
        for i in 0..frame.len() {
            let i = i as u8;
            // A mixed frame of dropped packets also holds packets of other interfaces.
            let other = |one| matches!(on, Iface::Mixed) && frame.rx_if(i) != one;
            if buffer.sw_if.is_some_and(other) {
                continue;
            }
            let before = if dropped { frame.before(i, stepped_over(frame, i)) } else { &[] };
            let is_other_reason = |error| frame.aux().get(usize::from(i)) != Some(&error);
            if dropped && buffer.error.is_some_and(is_other_reason)
                || !buffer.wants(before, frame, i)
            {
                continue;
            }
            if buffer.left == 0 {
                refused += 1;
                continue;
            }
            let link = match (dropped, on) {
                (true, _) => of_dropped(frame, i, of(frame.rx_if(i))),
                (false, Iface::Uniform(sw_if)) => of(sw_if),
                (false, Iface::Mixed) if sent => of(frame.tx_if(i)),
                (false, Iface::Mixed) => of(frame.rx_if(i)),
            };
            let length = (before.len() + frame.total_len(i)) as u32;
            buffer.add(at, length, link, std::iter::once(before).chain(frame.segments(i)));
            taken += 1;
        }
        cx.count(CAPTURED, taken);
        cx.count(FULL, refused);
    }

    fn message(&mut self, message: Box<dyn Any + Send>) {
        let Ok(message) = message.downcast::<TapMessage>() else { return };
        match *message {
            TapMessage::Begin(buffer) => (self.buffer, self.ip) = (Some(buffer), Vec::new()),
            TapMessage::Ip(sw_if) => self.ip.push(sw_if),
            TapMessage::New(sw_if) => self.ip.retain(|other| *other != sw_if),
            TapMessage::End(to) => {
                if let Some(buffer) = self.buffer.take() {
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
        buffer.add(5, 3, Link::Ethernet, [&[1, 2][..], &[3]].into_iter());
        buffer.add(6, 100, Link::Ip, [&long[..20], &long[20..]].into_iter());
        buffer.add(7, 0, Link::Ethernet, std::iter::empty());
        assert_eq!((buffer.left, buffer.taken.load(Relaxed)), (0, 3));
        let all: Vec<_> = buffer.packets().collect();
        assert_eq!(all[0], Captured { at: 5, length: 3, bytes: &[1, 2, 3], bare: false });
        assert_eq!(all[1], Captured { at: 6, length: 100, bytes: &long[..32], bare: true });
        assert_eq!(all[2], Captured { at: 7, length: 0, bytes: &[], bare: false });
    }
    /// The link type of a tunnel's packets does not apply to another interface with its index.
    #[test]
    fn a_new_interface_is_no_tunnel() {
        let mut tap = PcapTap::default();
        let [gone, other] = [3, 4].map(SwIfIndex);
        for message in [TapMessage::Ip(gone), TapMessage::Ip(other), TapMessage::New(gone)] {
            tap.message(Box::new(message));
        }
        assert_eq!(tap.ip, [other]);
    }
}
