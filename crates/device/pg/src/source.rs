//! Packets of a stream on a worker: a ring of prepared packets, or a generator.

use crate::template::{self, Generator};
use std::sync::Arc;
use thalweg_buffer::Frame;
use thalweg_graph::NodeCx;

/// Prepared packets, sent in turn again and again.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: Vec<u8>,
    /// Start of each packet in `bytes`, and at last the end of the last one.
    starts: Vec<usize>,
    longest: usize,
    uniform: bool,
}

impl Ring {
    pub(crate) fn new(packets: &[Vec<u8>]) -> Ring {
        let mut r = Ring { bytes: Vec::new(), starts: vec![0], longest: 0, uniform: true };
        for p in packets {
            r.uniform &= p.len() == packets[0].len();
            r.longest = r.longest.max(p.len());
            r.bytes.extend_from_slice(p);
            r.starts.push(r.bytes.len());
        }
        r
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn packet(&self, i: usize) -> &[u8] {
        &self.bytes[self.starts[i]..self.starts[i + 1]]
    }
}

/// Source of packets.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Prepared packets, and the index of the next.
    Ring(Arc<Ring>, usize),
    /// Packets generated one by one, with scratch space for one that needs several buffers.
    Generator(Box<Generator>, Box<[u8]>),
}

impl Source {
    /// Returns a frame of up to `want` packets; fewer if the pool runs out.
    #[inline]
    pub(crate) fn fill(&mut self, cx: &mut NodeCx<'_>, want: usize) -> Box<Frame> {
        let room = cx.cache().pool().data_size();
        match self {
            Source::Ring(ring, next) if ring.longest <= room => from_ring(ring, next, cx, want),
            Source::Generator(g, _) if g.max_len() <= room => generate(g, cx, want),
            _ => self.fill_chained(cx, want),
        }
    }

    /// The same for packets that may need several buffers.
    #[cold]
    fn fill_chained(&mut self, cx: &mut NodeCx<'_>, want: usize) -> Box<Frame> {
        let mut frame = cx.new_frame();
        for _ in 0..want.min(frame.room()) {
            let Some(mut packet) = cx.cache().alloc() else { break };
            let whole = match self {
                Source::Ring(ring, next) => {
                    let at = *next;
                    *next = if at + 1 == ring.len() { 0 } else { at + 1 };
                    packet.append(ring.packet(at), cx.cache())
                }
                Source::Generator(g, whole) => {
                    let whole = &mut whole[..g.next_len()];
                    g.write(whole);
                    packet.append(whole, cx.cache())
                }
            };
            if !whole {
                cx.cache().free(packet);
                break;
            }
            if let Err(back) = frame.push(packet) {
                cx.cache().free(back);
                break;
            }
        }
        frame
    }
}

fn from_ring(ring: &Ring, next: &mut usize, cx: &mut NodeCx<'_>, want: usize) -> Box<Frame> {
    let mut frame = cx.alloc_frame(want, ring.longest);
    let n = frame.len();
    if ring.len() == 1 {
        // The benchmarks' case: the packet stays in registers.
        for i in 0..n {
            template::copy(frame.pkt(i as u8).data_mut(), &ring.bytes);
        }
        return frame;
    }
    let mut at = *next;
    for i in 0..n {
        let from = ring.packet(at);
        at = if at + 1 == ring.len() { 0 } else { at + 1 };
        let mut p = frame.pkt(i as u8);
        if !ring.uniform {
            p.truncate(from.len(), cx.cache());
        }
        template::copy(p.data_mut(), from);
    }
    *next = at;
    frame
}

fn generate(g: &mut Generator, cx: &mut NodeCx<'_>, want: usize) -> Box<Frame> {
    let mut frame = cx.alloc_frame(want, g.max_len());
    for i in 0..frame.len() {
        let len = g.next_len();
        let mut p = frame.pkt(i as u8);
        if len < p.len() {
            p.truncate(len, cx.cache());
        }
        g.write(p.data_mut());
    }
    frame
}
