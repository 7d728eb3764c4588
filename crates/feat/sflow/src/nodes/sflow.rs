//! `sflow`: samples one in N of the packets that an interface receives.
//!
//! A tap on `device-input`: it looks at frames and moves none. It reads the frame's length, and of
//! sampled packets the bytes, the length and the offload; these it marks with [`Flags::SAMPLED`].
//! Samples go into this worker's ring; nothing is allocated, locked or waited for.

use crate::ring::{self, Batch, MAX_HEADER, SampleMeta, SampleWriter};
use crate::sampler::{Countdown, Random};
use crate::state::Taps;
use crate::stats::TapStats;
use std::any::Any;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, GsoKind, Iface};
use thalweg_graph::stats::MAX_INTERFACES;
use thalweg_graph::{Built, FeatureDecl, Kind, NodeDecl, Tap, TapCx};

thalweg_graph::errors! {
    PROCESSED: Info, 256, "sflow packets processed";
    SAMPLED: Info, 256, "sflow packets sampled";
    DROPPED: Info, 256, "sflow packets dropped";
    SUPER: Info, 256, "sflow super-packets sampled by their whole length";
}

/// Declaration of the node.
pub static NODE: NodeDecl = NodeDecl {
    name: "sflow",
    kind: Kind::Tap,
    errors: ERRORS,
    feature: Some(FeatureDecl { arc: "device-input", before: &[], after: &[] }),
    build: |cx| {
        let (writer, reader) = ring::channel();
        let stats = Arc::new(TapStats::default());
        cx.shared::<Taps>().add(reader, stats.clone());
        Built::tap(SFlowTap::new(writer, stats))
    },
    ..NodeDecl::DEFAULT
};

/// What the main thread tells the tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapMessage {
    /// An interface is sampled at this rate from now on. Another generation than before: its
    /// counters begin at zero.
    Port {
        /// The interface.
        sw_if: u32,
        /// Which of that number.
        generation: u32,
        /// One packet in so many, 0 none.
        rate: u32,
    },
    /// An interface is gone.
    Forget {
        /// The interface.
        sw_if: u32,
    },
    /// Most bytes of a header, up to [`MAX_HEADER`].
    HeaderBytes(u16),
}

#[derive(Default)]
struct Port {
    countdown: Countdown,
    generation: u32,
}

/// The sampler of one worker.
pub struct SFlowTap {
    ports: Box<[Port]>,
    random: Random,
    header_bytes: usize,
    ring: SampleWriter,
    stats: Arc<TapStats>,
}

impl SFlowTap {
    /// A tap that samples nothing yet.
    #[must_use]
    pub fn new(ring: SampleWriter, stats: Arc<TapStats>) -> SFlowTap {
        SFlowTap {
            ports: (0..MAX_INTERFACES).map(|_| Port::default()).collect(),
            random: Random::from_system(),
            header_bytes: usize::from(crate::state::DEFAULT_HEADER_BYTES),
            ring,
            stats,
        }
    }

    /// Takes the samples of a frame. `before`: packets of the interface before this frame.
    #[inline(never)]
    fn sample(&mut self, cx: &TapCx<'_>, frame: &mut Frame, sw_if: u32, before: u64) {
        let port = &mut self.ports[sw_if as usize];
        let mut meta = SampleMeta {
            sw_if,
            generation: port.generation,
            rate: port.countdown.rate(),
            at: cx.now(),
            ..SampleMeta::default()
        };
        let offload = frame.flags().contains(Flags::OFFLOAD);
        let (mut count, mut taken) = (0u64, 0);
        let mut batch = self.ring.batch();
        port.countdown.sample(frame.len() as u64, &mut self.random, |at| {
            let i = at as u8;
            meta.frame_length = frame.total_len(i) as u32;
            meta.pool = before + at + 1;
            if offload {
                note_super(cx, frame, i);
            }
            taken += u64::from(push(&mut batch, meta, frame, i, self.header_bytes));
            frame.pkt(i).mark(Flags::SAMPLED);
            count += 1;
        });
        drop(batch);
        let counters = self.stats.port(sw_if);
        counters.taken.add(taken);
        cx.count(SAMPLED, count);
        let lost = count - taken;
        if lost > 0 {
            counters.dropped.add(lost);
            cx.count(DROPPED, lost);
        }
    }
}

/// Puts a packet's header into the ring.
#[inline]
fn push(ring: &mut Batch<'_>, meta: SampleMeta, frame: &Frame, i: u8, limit: usize) -> bool {
    let data = frame.data(i);
    if data.len() >= limit {
        return ring.push(meta, &data[..limit]);
    }
    if (meta.frame_length as usize) <= data.len() {
        return ring.push(meta, data);
    }
    // The header goes on in the next segment.
    let mut gathered = [0; MAX_HEADER];
    let mut n = 0;
    for segment in frame.segments(i) {
        let more = segment.len().min(limit - n);
        gathered[n..n + more].copy_from_slice(&segment[..more]);
        n += more;
    }
    ring.push(meta, &gathered[..n])
}

/// A super-packet stands for several on the wire, yet is sampled as one.
#[cold]
fn note_super(cx: &TapCx<'_>, frame: &Frame, i: u8) {
    let meta = frame.meta(i);
    if meta.flags().contains(Flags::OFFLOAD) && meta.offload.gso != GsoKind::None {
        cx.count(SUPER, 1);
    }
}

impl Tap for SFlowTap {
    #[inline]
    fn frame(&mut self, cx: &mut TapCx<'_>, frame: &mut Frame, on: Iface) {
        let Iface::Uniform(sw_if) = on else { return };
        let Some(port) = self.ports.get_mut(sw_if as usize) else { return };
        let n = frame.len() as u64;
        cx.count(PROCESSED, n);
        let seen = &self.stats.port(sw_if).seen;
        let before = seen.get();
        seen.set(before + n);
        if port.countdown.pass(n) {
            return;
        }
        cx.work_begins();
        self.sample(cx, frame, sw_if, before);
    }

    fn message(&mut self, message: Box<dyn Any + Send>) {
        let Ok(message) = message.downcast::<TapMessage>() else { return };
        match *message {
            TapMessage::Port { sw_if, generation, rate } => {
                let Some(port) = self.ports.get_mut(sw_if as usize) else { return };
                if port.generation != generation {
                    *port = Port { generation, ..Port::default() };
                    self.stats.port(sw_if).clear();
                }
                port.countdown.set_rate(rate, &mut self.random);
            }
            TapMessage::Forget { sw_if } => {
                if let Some(port) = self.ports.get_mut(sw_if as usize) {
                    *port = Port::default();
                    self.stats.port(sw_if).clear();
                }
            }
            TapMessage::HeaderBytes(n) => self.header_bytes = usize::from(n).min(MAX_HEADER),
        }
    }
}
