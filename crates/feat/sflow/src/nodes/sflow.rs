//! `sflow`: samples one in N of the packets that an interface receives, sends, or both, and those
//! that are dropped.
//!
//! A tap on `device-input`, `interface-output` and `error-drop` that inspects frames and moves
//! none. The tap reads bytes, length and offload metadata of a sampled packet, and marks received
//! ones so that the engine reports their disposition. Samples go into the worker's ring without
//! allocation, lock or wait. The tap is not called for frames without a sample.

use crate::drops::Limiter;
use crate::head::Head;
use crate::pending::PendingSamples;
use crate::record::{Cause, Disposition, Headers, SampleRecord};
use crate::ring::{self, MAX_HEADER, SampleWriter, Ticket};
use crate::sampler::Countdown;
use crate::segments::{MAX_FRAME_SAMPLES, MAX_SAMPLES, Wire};
use crate::state::Taps;
use crate::stats::TapStats;
use std::any::Any;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, Iface, LOCAL_IF, PacketKey};
use thalweg_device::SwIfIndex;
use thalweg_device::link_header::{Link, of_dropped, stepped_over};
use thalweg_graph::stats::MAX_INTERFACES;
use thalweg_graph::{
    Built, Copies, ERROR_DROP, Fate, FeatureDecl, INTERFACE_OUTPUT, Kind, NEEDED, NodeDecl, Tap,
    TapCx,
};
use thalweg_tables::prefetch::Line;
use thalweg_tables::random::Random;
use thalweg_tables::{SparseArray, zeroable};

thalweg_graph::errors! {
    PROCESSED: Info, UNKNOWN, "sflow packets processed";
    SAMPLED: Info, UNKNOWN, "sflow packets sampled";
    DROPPED: Info, UNKNOWN, "sflow packets dropped";
    DISCARDS: Info, UNKNOWN, "sflow discards processed";
    DISCARDS_DROPPED: Info, UNKNOWN, "sflow discards dropped";
}

/// Declaration of the node.
pub static NODE: NodeDecl = NodeDecl {
    name: "sflow",
    kind: Kind::Tap,
    errors: ERRORS,
    feature: Some(FeatureDecl::on("device-input")),
    also_on: &["interface-output", "error-drop"],
    build: |cx| {
        let taps = cx.shared::<Taps>();
        let (writer, reader) = match ring::channel(taps.bell()) {
            Ok(both) => both,
            Err(e) => return Built::Refused(format!("ring of samples: {e}")),
        };
        let stats = Arc::new(TapStats::default());
        taps.add(reader, stats.clone());
        Built::tap(SFlowTap::new(writer, stats))
    },
    ..NodeDecl::DEFAULT
};

/// Lines of the ring that are published together while packets keep coming.
const PUBLISH: u64 = 128;

/// A message from the main thread to the tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapMessage {
    /// Sets what is sampled of an interface. A new generation resets its counters.
    Port {
        /// The interface.
        sw_if: SwIfIndex,
        /// Generation of the interface index.
        generation: u32,
        /// Sampling rate of received packets, 0 for none.
        rx_rate: u32,
        /// Sampling rate of sent packets, 0 for none.
        tx_rate: u32,
        /// Report drops of its packets.
        drops: bool,
        /// Header that its packets begin with.
        link: Link,
    },
    /// An interface was deleted.
    Forget {
        /// The interface.
        sw_if: SwIfIndex,
    },
    /// Maximum header bytes of a sample, up to [`MAX_HEADER`].
    HeaderBytes(u16),
    /// Maximum drop samples per second.
    DropLimit(u32),
}

zeroable! {
    /// Sampling state of an interface, in one cache line. All zero, it samples nothing.
    #[derive(Default)]
    #[repr(align(64))]
    struct Port {
        rx: Countdown,
        tx: Countdown,
        generation: u32,
        drops: bool,
        /// Its packets begin with their IP header.
        ip: bool,
        /// The counters have not been copied to the stats yet.
        dirty: bool,
        /// Sample pool: packets as on the wire that could have been sampled.
        seen: u64,
        taken: u64,
        lost: u64,
    }
}

impl Port {
    /// Adds packets to the sample pool.
    #[inline]
    fn see(&mut self, packets: u64, dirty: &mut Vec<SwIfIndex>, sw_if: SwIfIndex) {
        self.seen += packets;
        if !std::mem::replace(&mut self.dirty, true) {
            note(dirty, sw_if);
        }
    }

    fn link(&self) -> Link {
        if self.ip { Link::Ip } else { Link::Ethernet }
    }

    #[inline]
    fn countdown(&mut self, sent: bool) -> &mut Countdown {
        if sent { &mut self.tx } else { &mut self.rx }
    }
}

#[cold]
#[inline(never)]
fn note(dirty: &mut Vec<SwIfIndex>, sw_if: SwIfIndex) {
    dirty.push(sw_if);
}

// The two lines that `lines` names.
const _: () = assert!(std::mem::offset_of!(SFlowTap, ring) == 64);

/// The sampler of one worker. The first two cache lines hold what a sample needs.
#[repr(C)]
pub struct SFlowTap {
    ports: SparseArray<Port, MAX_INTERFACES>,
    /// Time of the loop in which the tap was called last.
    now: u64,
    random: Random,
    header_bytes: usize,
    pending: PendingSamples,
    ring: SampleWriter,
    /// Ports whose counters have not been copied to the stats yet.
    dirty: Vec<SwIfIndex>,
    stats: Arc<TapStats>,
    limiter: Limiter,
}

impl SFlowTap {
    /// Makes a tap that samples nothing yet.
    #[must_use]
    pub fn new(ring: SampleWriter, stats: Arc<TapStats>) -> SFlowTap {
        SFlowTap {
            ports: SparseArray::default(),
            random: Random::from_system(),
            header_bytes: usize::from(crate::state::DEFAULT_HEADER_BYTES),
            pending: PendingSamples::new(&ring),
            ring,
            limiter: Limiter::new(crate::state::DEFAULT_DROP_LIMIT),
            stats,
            dirty: Vec::with_capacity(64),
            now: 0,
        }
    }

    /// Handles a frame that was not preceded by skipped packets.
    #[cold]
    #[inline(never)]
    fn frame_alone(&mut self, cx: &mut TapCx, sw_if: SwIfIndex, frame: &mut Frame) {
        self.passed_and_frame(cx, (sw_if, 0), frame);
    }

    /// Counts packets that pass without inspection.
    fn skip(&mut self, sent: bool, sw_if: SwIfIndex, packets: u64) {
        let port = self.ports.at_mut(sw_if);
        port.see(packets, &mut self.dirty, sw_if);
        let free = port.countdown(sent).pass(packets);
        debug_assert!(free, "a sample was missed");
    }

    /// Handles a sent frame after `passed` other packets. Out of line, so that the receive path
    /// saves fewer registers.
    #[inline(never)]
    fn look_sent(&mut self, cx: &mut TapCx, passed: (SwIfIndex, u64), frame: &mut Frame) {
        self.look::<true>(cx, passed, frame);
    }

    /// Handles a frame after `passed` other packets. Mostly the frame has a single sample, and the
    /// call is so rare that its code is not cached: the common case is kept short, all else is out
    /// of line.
    #[inline(always)]
    fn look<const SENT: bool>(
        &mut self,
        cx: &mut TapCx,
        (sw_if, passed): (SwIfIndex, u64),
        frame: &mut Frame,
    ) {
        if frame.flags().intersects(Flags::OFFLOAD.union(Flags::CHAINED)) {
            return self.look_closely::<SENT>(cx, (sw_if, passed), frame);
        }
        let SFlowTap { ports, ring, random, pending, header_bytes, dirty, .. } = self;
        let port = ports.at_mut(sw_if);
        let n = frame.len() as u64;
        // The pool at the packet that is due.
        let pool = port.seen + port.countdown(SENT).left();
        port.see(passed + n, dirty, sw_if);
        let countdown = port.countdown(SENT);
        let Some(skipped) = countdown.next_behind(passed, n, random) else {
            cx.skip_packets(countdown.free());
            return;
        };
        let to = (ring, pending, *header_bytes);
        let room = take::<SENT, true>(port, to, (sw_if, pool, cx.now()), frame, skipped as u8);
        let countdown = port.countdown(SENT);
        let free = match countdown.pass(n - skipped - 1) {
            true => countdown.free(),
            false => self.look_on::<SENT>((sw_if, cx.now()), frame, skipped + 1, room),
        };
        cx.skip_packets(free);
    }

    /// The same for a frame with packets in several segments, or that stand for several on the
    /// wire.
    #[cold]
    #[inline(never)]
    fn look_closely<const SENT: bool>(
        &mut self,
        cx: &mut TapCx,
        (sw_if, passed): (SwIfIndex, u64),
        frame: &mut Frame,
    ) {
        if frame.flags().contains(Flags::OFFLOAD) {
            return self.look_wire(cx, (sw_if, passed), frame, SENT);
        }
        self.skip(SENT, sw_if, passed);
        let port = self.ports.at_mut(sw_if);
        port.see(frame.len() as u64, &mut self.dirty, sw_if);
        cx.skip_packets(self.look_on::<SENT>((sw_if, cx.now()), frame, 0, true));
    }

    /// Samples the packets of a counted frame from `at` on; `room` is false if the ring refused the
    /// previous sample. Returns how many packets may pass after the frame.
    #[inline(never)]
    fn look_on<const SENT: bool>(
        &mut self,
        (sw_if, now): (SwIfIndex, u64),
        frame: &mut Frame,
        mut at: u64,
        mut room: bool,
    ) -> u64 {
        let SFlowTap { ports, ring, random, pending, header_bytes, .. } = self;
        let port = ports.at_mut(sw_if);
        let n = frame.len() as u64;
        let before = port.seen - n;
        while let Some(skipped) = port.countdown(SENT).next(n - at, random) {
            at += skipped;
            if room {
                let place = (sw_if, before + at + 1, now);
                let to = (&mut *ring, &mut *pending, *header_bytes);
                room = take::<SENT, false>(port, to, place, frame, at as u8);
            } else {
                // The ring was full and stays full until the end of the loop.
                port.lost += 1;
            }
            at += 1;
        }
        port.countdown(SENT).free()
    }

    /// The same for a frame in which packets may stand for several on the wire.
    #[cold]
    #[inline(never)]
    fn look_wire(
        &mut self,
        cx: &mut TapCx,
        (sw_if, passed): (SwIfIndex, u64),
        frame: &mut Frame,
        sent: bool,
    ) {
        self.skip(sent, sw_if, passed);
        let mut left = MAX_FRAME_SAMPLES;
        for i in 0..frame.len() as u16 {
            self.sample_wire(cx.now(), frame, i as u8, (sw_if, sent), &mut left);
        }
        cx.skip_packets(self.ports.at_mut(sw_if).countdown(sent).free());
    }

    /// Takes samples of the segments of GSO packet `i`: the first, and `left` more in the frame.
    fn sample_wire(
        &mut self,
        now: u64,
        frame: &mut Frame,
        i: u8,
        (sw_if, sent): (SwIfIndex, bool),
        left: &mut u64,
    ) {
        let wire = Wire::of(frame, i, 0, self.ports.at(sw_if).link());
        let n = wire.packets();
        let port = self.ports.at_mut(sw_if);
        let before = port.seen;
        port.see(n, &mut self.dirty, sw_if);
        let mut record = SampleRecord {
            cause: if sent { Cause::Sent } else { Cause::Received },
            sw_if,
            generation: port.generation,
            rate: port.countdown(sent).rate(),
            rx_if: if sent { came_by(frame, i) } else { sw_if },
            at: now,
            ..SampleRecord::default()
        };
        record.disposition = if sent {
            sent_by(frame, i, sw_if)
        } else {
            self.pending.several();
            Disposition::Pending { key: frame.key(i), row: i }
        };
        let (mut at, mut due) = (0, 0);
        loop {
            let port = self.ports.at_mut(sw_if);
            let Some(skipped) = port.countdown(sent).next(n - at, &mut self.random) else { break };
            at += skipped;
            if due == 0 || (due < MAX_SAMPLES && *left > 0) {
                *left -= u64::from(due > 0);
                record.pool = before + at + 1;
                self.push_segment(record, frame, i, (&wire, at), sent);
            } else {
                // A sender chooses the number of segments.
                port.lost += 1;
            }
            due += 1;
            at += 1;
        }
    }

    /// Pushes the sample of one segment of GSO packet `i`.
    fn push_segment(
        &mut self,
        mut record: SampleRecord,
        frame: &mut Frame,
        i: u8,
        (wire, at): (&Wire, u64),
        sent: bool,
    ) {
        let mut buf = [0; MAX_HEADER];
        let (length, header) = wire.packet(frame, i, at, self.header_bytes, &mut buf);
        let port = self.ports.at_mut(record.sw_if);
        (record.frame_length, record.lost) = (length, port.lost as u32);
        match self.ring.push(&record, header) {
            Some(ticket) => {
                port.taken += 1;
                if !sent {
                    frame.mark_sampled(i);
                    self.pending.waits(&self.ring, ticket, (frame.key(i), i));
                }
            }
            None => port.lost += 1,
        }
    }

    /// Called in each loop. The packets of earlier loops have left or are held, so their samples
    /// are published once there are enough.
    #[inline]
    fn turn(&mut self, now: u64) {
        if self.ring.pending() >= PUBLISH && now != self.now {
            self.publish();
        }
        self.now = now;
    }

    #[inline(never)]
    fn publish(&mut self) {
        self.ring.publish();
        self.pending.clear(&self.ring);
    }

    /// Completes the samples of a frame, which may have changed or remotely sampled packets.
    #[inline(never)]
    fn complete_frame(&mut self, frame: &Frame, fate: Fate) {
        let SFlowTap { pending, ring, .. } = self;
        match fate {
            // The common case.
            Fate::Sent(tx_if) if !frame.flags().intersects(UNUSUAL) => {
                pending.complete_frame(ring, frame, |i| sent_unchanged(frame, i, tx_if));
            }
            _ => self.complete_changed(frame, fate),
        }
    }

    #[cold]
    #[inline(never)]
    fn complete_changed(&mut self, frame: &Frame, fate: Fate) {
        let local = frame.flags().contains(Flags::LOCAL);
        let SFlowTap { pending, ring, .. } = self;
        pending.complete_frame(ring, frame, |i| disposition(frame, i, fate, local));
        // Only packets handed over have a sample id.
        if frame.flags().contains(Flags::META) && fate != Fate::HandedOver {
            self.report_remote_all(frame, fate, local);
        }
    }

    /// Reports the disposition of packets that another worker has sampled.
    #[cold]
    fn report_remote_all(&mut self, frame: &Frame, fate: Fate, local: bool) {
        for i in frame.sampled().iter() {
            let number = frame.meta(i).sample_id;
            if number != 0 {
                report_remote(&mut self.ring, number, disposition(frame, i, fate, local));
            }
        }
    }

    /// Takes samples of dropped packets, of GSO packets segment by segment. Packets beyond the
    /// limit are only counted.
    fn drops(&mut self, cx: &mut TapCx, frame: &Frame) {
        let (mut reported, mut seen) = (0, 0);
        let offload = frame.flags().contains(Flags::OFFLOAD);
        for i in 0..frame.len() as u16 {
            let i = i as u8;
            let rx_if = frame.rx_if(i);
            let port = self.ports.at(rx_if);
            if !port.drops {
                continue;
            }
            let record = SampleRecord {
                cause: Cause::Dropped,
                sw_if: rx_if,
                generation: port.generation,
                rx_if: came_by(frame, i),
                at: cx.now(),
                ..SampleRecord::default()
            };
            // A drop beyond the limit is looked at only if it counts as several on the wire.
            if !self.limiter.allow(cx.now()) {
                let packets = if offload { self.wire(frame, i).packets() } else { 1 };
                self.limiter.suppress(packets as u32 - 1);
                seen += packets;
                continue;
            }
            let wire = self.wire(frame, i);
            let packets = wire.packets();
            seen += packets;
            let mut at = 0;
            loop {
                reported += u64::from(self.push_dropped(record, frame, i, (&wire, at)));
                at += 1;
                if at == packets {
                    break;
                }
                if at == MAX_SAMPLES {
                    self.limiter.suppress((packets - at) as u32);
                    break;
                }
                if !self.limiter.allow(cx.now()) {
                    self.limiter.suppress((packets - at - 1) as u32);
                    break;
                }
            }
        }
        cx.count(DISCARDS, seen);
        if seen > reported {
            self.stats.suppressed.add(seen - reported);
            cx.count(DISCARDS_DROPPED, seen - reported);
        }
    }

    /// Returns dropped packet `i` as on the wire, including headers that were stepped over.
    fn wire(&self, frame: &Frame, i: u8) -> Wire {
        let link = of_dropped(frame, i, self.ports.at(frame.rx_if(i)).link());
        Wire::of(frame, i, stepped_over(frame, i), link)
    }

    /// Pushes the sample of one segment of dropped packet `i`.
    fn push_dropped(
        &mut self,
        mut record: SampleRecord,
        frame: &Frame,
        i: u8,
        (wire, at): (&Wire, u64),
    ) -> bool {
        let mut buf = [0; MAX_HEADER];
        let (length, bytes) = wire.packet(frame, i, at, self.header_bytes, &mut buf);
        (record.frame_length, record.lost) = (length, self.limiter.suppressed());
        record.bare = wire.is_bare();
        record.disposition = Disposition::Dropped(frame.aux()[usize::from(i)]);
        let done = self.ring.push(&record, bytes).is_some();
        if !done {
            self.limiter.suppress(1);
        }
        done
    }
}

/// Flags of packets whose headers may have been changed by more than routing.
const CHANGED: Flags = Flags::TRANSLATED.union(Flags::RETAGGED);

/// Frame flags that rule out the fast path of [`sent_unchanged`].
const UNUSUAL: Flags = Flags::LOCAL.union(CHANGED).union(Flags::META);

/// The disposition of a packet that left without rewritten headers other than by routing.
#[inline]
fn sent_unchanged(frame: &Frame, i: u8, tx_if: SwIfIndex) -> Disposition {
    Disposition::Out { tx_if, entry: frame.aux()[usize::from(i)], headers: None }
}

/// The interface that a packet came by; 0 if the router made it, also as an answer to one that
/// came.
#[inline]
fn came_by(frame: &Frame, i: u8) -> SwIfIndex {
    match frame.flags().contains(Flags::LOCAL) && frame.meta(i).flags().contains(Flags::LOCAL) {
        true => LOCAL_IF,
        false => frame.rx_if(i),
    }
}

/// Destination of samples, and the maximum header length.
type To<'t> = (&'t mut SampleWriter, &'t mut PendingSamples, usize);

/// The record of packet `i`, the `pool`-th that could have been sampled.
#[inline(always)]
fn record<const SENT: bool>(
    port: &mut Port,
    (sw_if, pool, now): (SwIfIndex, u64, u64),
    (frame, i): (&Frame, u8),
    (key, length): (PacketKey, usize),
) -> SampleRecord {
    SampleRecord {
        cause: if SENT { Cause::Sent } else { Cause::Received },
        sw_if,
        generation: port.generation,
        rate: port.countdown(SENT).rate(),
        frame_length: length as u32,
        pool,
        lost: port.lost as u32,
        rx_if: if SENT { came_by(frame, i) } else { sw_if },
        at: now,
        disposition: if SENT {
            sent_by(frame, i, sw_if)
        } else {
            Disposition::Pending { key, row: i }
        },
        ..SampleRecord::default()
    }
}

/// Takes the sample of packet `i`, see [`record`]; returns false if the ring is full.
/// `WHOLE` means that all packets are in a single segment.
#[inline(always)]
fn take<const SENT: bool, const WHOLE: bool>(
    port: &mut Port,
    (ring, pending, header_bytes): To,
    place: (SwIfIndex, u64, u64),
    frame: &mut Frame,
    i: u8,
) -> bool {
    let (key, data) = frame.key_and_data(i);
    if !WHOLE && data.len() < header_bytes && frame.total_len(i) > data.len() {
        return take_gathered::<SENT>(port, (ring, pending, header_bytes), place, frame, i);
    }
    let length = if WHOLE { data.len() } else { frame.total_len(i) };
    let header = &data[..data.len().min(header_bytes)];
    let ticket = ring.push_here(&record::<SENT>(port, place, (frame, i), (key, length)), header);
    taken::<SENT>(port, (ring, pending), ticket, frame, (key, i))
}

/// The same for a packet whose header continues in the next segment.
#[cold]
#[inline(never)]
fn take_gathered<const SENT: bool>(
    port: &mut Port,
    (ring, pending, header_bytes): To,
    place: (SwIfIndex, u64, u64),
    frame: &mut Frame,
    i: u8,
) -> bool {
    let mut gathered = [0; MAX_HEADER];
    let n = gather(frame, i, &mut gathered[..header_bytes]);
    let (key, length) = (frame.key(i), frame.total_len(i));
    let ticket = ring.push(&record::<SENT>(port, place, (frame, i), (key, length)), &gathered[..n]);
    taken::<SENT>(port, (ring, pending), ticket, frame, (key, i))
}

/// Marks and counts a packet whose sample was taken, or counts the lost sample.
#[inline(always)]
fn taken<const SENT: bool>(
    port: &mut Port,
    (ring, pending): (&SampleWriter, &mut PendingSamples),
    ticket: Option<Ticket>,
    frame: &mut Frame,
    (key, i): (PacketKey, u8),
) -> bool {
    let Some(ticket) = ticket else {
        port.lost += 1;
        return false;
    };
    port.taken += 1;
    if !SENT {
        frame.mark_sampled(i);
        pending.waits(ring, ticket, (key, i));
    }
    true
}

/// Copies the first bytes of a packet to `to`; returns their number.
#[cold]
fn gather(frame: &Frame, i: u8, to: &mut [u8]) -> usize {
    let mut n = 0;
    for segment in frame.segments(i) {
        let more = segment.len().min(to.len() - n);
        to[n..n + more].copy_from_slice(&segment[..more]);
        n += more;
    }
    n
}

/// The disposition of a packet that leaves. Its bytes may no longer be cached, so they are read
/// only if the headers may have changed since it was sampled.
#[inline]
fn sent_by(frame: &Frame, i: u8, tx_if: SwIfIndex) -> Disposition {
    let headers = match frame.flags().intersects(CHANGED) {
        true => headers_of_changed(frame, i),
        false => None,
    };
    Disposition::Out { tx_if, entry: frame.aux()[usize::from(i)], headers }
}

#[cold]
fn headers_of_changed(frame: &Frame, i: u8) -> Option<Headers> {
    if !frame.meta(i).flags().intersects(CHANGED) {
        return None;
    }
    Some(Head::either(frame.data(i), frame.total_len(i)).headers())
}

/// Returns the disposition of a sampled packet.
#[inline]
fn disposition(frame: &Frame, i: u8, fate: Fate, local: bool) -> Disposition {
    match fate {
        // The packet was turned into a reply to itself.
        Fate::Sent(_) if local && frame.meta(i).flags().contains(Flags::LOCAL) => {
            Disposition::Delivered
        }
        Fate::Sent(tx_if) => sent_by(frame, i, tx_if),
        Fate::SentEach => disposition(frame, i, Fate::Sent(frame.tx_if(i)), local),
        Fate::Dropped => Disposition::Dropped(frame.aux()[usize::from(i)]),
        Fate::Delivered => Disposition::Delivered,
        Fate::HandedOver => Disposition::Elsewhere(frame.meta(i).sample_id),
    }
}

/// Reports the disposition of a packet that another worker has sampled. If the ring is full, the
/// sample is sent without it.
#[cold]
fn report_remote(ring: &mut SampleWriter, number: u32, disposition: Disposition) {
    let record = SampleRecord {
        cause: Cause::RemoteDisposition,
        pool: number.into(),
        disposition,
        ..SampleRecord::default()
    };
    let _ = ring.push(&record, &[]);
}

impl Tap for SFlowTap {
    fn frame(&mut self, cx: &mut TapCx, frame: &mut Frame, on: Iface) {
        if cx.arc() == ERROR_DROP {
            self.turn(cx.now());
            self.drops(cx, frame);
            return;
        }
        if let Iface::Uniform(sw_if) = on {
            self.frame_alone(cx, sw_if, frame);
        }
    }

    fn passed(&mut self, cx: &mut TapCx, sw_if: SwIfIndex, packets: u64) {
        self.skip(cx.arc() == INTERFACE_OUTPUT, sw_if, packets);
    }

    // Inlined into the engine's call to save a call.
    #[inline(always)]
    fn passed_and_frame(&mut self, cx: &mut TapCx, passed: (SwIfIndex, u64), frame: &mut Frame) {
        self.turn(cx.now());
        if cx.arc() == INTERFACE_OUTPUT {
            self.look_sent(cx, passed, frame);
        } else {
            self.look::<false>(cx, passed, frame);
        }
    }

    #[inline]
    fn ends(&mut self, frame: &Frame, fate: Fate) {
        if let Fate::Sent(tx_if) = fate
            && !frame.flags().intersects(UNUSUAL)
        {
            let SFlowTap { pending, ring, .. } = self;
            let disposition = |i| sent_unchanged(frame, i, tx_if);
            if pending.complete_single(ring, frame, disposition) {
                return;
            }
        }
        self.complete_frame(frame, fate);
    }

    fn lines(&self, sw_if: SwIfIndex) -> Option<[Line; NEEDED]> {
        Some([Line::of(self.ports.at(sw_if)), Line::of(self), Line::of(&self.ring)])
    }

    fn marks(&self) -> bool {
        true
    }

    fn delivered(&mut self, key: PacketKey, sample_id: u32) {
        self.pending.complete(&mut self.ring, key, Disposition::Delivered);
        if sample_id != 0 {
            report_remote(&mut self.ring, sample_id, Disposition::Delivered);
        }
    }

    fn replaced(&mut self, old: PacketKey, new: PacketKey) {
        self.pending.rename(&mut self.ring, old, new);
    }

    fn gone(&mut self, key: PacketKey) {
        self.pending.complete(&mut self.ring, key, Disposition::Unknown);
    }

    fn copied(&mut self, key: PacketKey, sample_id: u32, copies: Copies) {
        let Copies { outputs, changed } = copies;
        let disposition = Disposition::Several { outputs, changed };
        self.pending.complete(&mut self.ring, key, disposition);
        if sample_id != 0 {
            report_remote(&mut self.ring, sample_id, disposition);
        }
    }

    fn settle(&mut self, cx: &mut TapCx) {
        let all = &self.stats.all;
        let [mut processed, mut taken, mut lost] = [0; 3];
        for sw_if in self.dirty.drain(..) {
            let port = self.ports.at_mut(sw_if);
            port.dirty = false;
            let counters = self.stats.port(sw_if);
            for (counter, of_all, now, more) in [
                (&counters.seen, &all.seen, port.seen, &mut processed),
                (&counters.taken, &all.taken, port.taken, &mut taken),
                (&counters.dropped, &all.dropped, port.lost, &mut lost),
            ] {
                let since = now - counter.get();
                counter.set(now);
                of_all.add(since);
                *more += since;
            }
        }
        cx.count(PROCESSED, processed);
        cx.count(SAMPLED, taken + lost);
        if lost > 0 {
            cx.count(DROPPED, lost);
        }
        self.publish();
    }

    fn message(&mut self, message: Box<dyn Any + Send>) {
        let Ok(message) = message.downcast::<TapMessage>() else { return };
        match *message {
            TapMessage::Port { sw_if, generation, rx_rate, tx_rate, drops, link } => {
                let port = self.ports.at_mut(sw_if);
                if port.generation != generation {
                    *port = Port { generation, ..Port::default() };
                    self.stats.port(sw_if).clear();
                }
                port.rx.set_rate(rx_rate, &mut self.random);
                port.tx.set_rate(tx_rate, &mut self.random);
                (port.drops, port.ip) = (drops, link == Link::Ip);
            }
            TapMessage::Forget { sw_if } => {
                *self.ports.at_mut(sw_if) = Port::default();
                self.stats.port(sw_if).clear();
            }
            TapMessage::HeaderBytes(n) => self.header_bytes = usize::from(n).min(MAX_HEADER),
            TapMessage::DropLimit(n) => self.limiter.set(n),
        }
    }
}
