//! A line between hosts and their port, on which packets take time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use thalweg_buffer::{Frame, Packet};
use thalweg_graph::NodeCx;
use thalweg_load::Micros;
use thalweg_tables::random::Random;

use crate::impair::{Impairment, hits};

/// A packet under way.
struct Held {
    due: Micros,
    /// Packets that are due at the same time keep their order.
    number: u64,
    packet: Packet,
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

/// Packets under way, and how long they take.
pub(crate) struct Line {
    is: Impairment,
    random: Random,
    held: BinaryHeap<Reverse<Held>>,
    number: u64,
}

impl Line {
    /// Returns a line if packets take time on it, or are repeated.
    pub(crate) fn new(is: Impairment) -> Option<Line> {
        let has_work = is.delay > 0 || is.jitter > 0 || is.repeat > 0;
        let line =
            || Line { is, random: Random::with_seed(!is.seed), held: BinaryHeap::new(), number: 0 };
        has_work.then(line)
    }

    /// Takes packets in.
    pub(crate) fn put(&mut self, cx: &mut NodeCx<'_>, now: Micros, mut frame: Box<Frame>) {
        let mut packets: Vec<Packet> = std::iter::from_fn(|| frame.pop()).collect();
        // The last one comes first.
        packets.reverse();
        for packet in packets {
            let twin = hits(&mut self.random, self.is.repeat).then(|| self.twin(cx, &packet));
            self.hold(now, packet);
            if let Some(twin) = twin.flatten() {
                self.hold(now, twin);
            }
        }
        cx.put_frame(frame);
    }

    fn twin(&mut self, cx: &mut NodeCx<'_>, packet: &Packet) -> Option<Packet> {
        let bytes: Vec<u8> = packet.segments().flatten().copied().collect();
        let mut twin = cx.cache().alloc()?;
        if twin.fill(&bytes, cx.cache()) {
            return Some(twin);
        }
        cx.consume(twin);
        None
    }

    fn hold(&mut self, now: Micros, packet: Packet) {
        let jitter = match self.is.jitter {
            0 => 0,
            most => self.random.below(u64::from(most) + 1),
        };
        let due = now + u64::from(self.is.delay) + jitter;
        let number = self.number;
        self.number += 1;
        self.held.push(Reverse(Held { due, number, packet }));
    }

    /// Returns a frame of packets that have arrived.
    pub(crate) fn arrived(&mut self, cx: &mut NodeCx<'_>, now: Micros) -> Option<Box<Frame>> {
        let mut frame: Option<Box<Frame>> = None;
        while self.due().is_some_and(|due| due <= now) {
            let room = frame.get_or_insert_with(|| cx.new_frame());
            if room.room() == 0 {
                break;
            }
            let Some(Reverse(held)) = self.held.pop() else { break };
            if let Err(packet) = room.push(held.packet) {
                cx.consume(packet);
            }
        }
        frame
    }

    /// Returns the time when the next packet arrives.
    pub(crate) fn due(&self) -> Option<Micros> {
        self.held.peek().map(|Reverse(held)| held.due)
    }

    /// Returns all packets to the pool.
    pub(crate) fn clear(mut self, cx: &mut NodeCx<'_>) {
        for Reverse(held) in self.held.drain() {
            cx.consume(held.packet);
        }
    }
}
