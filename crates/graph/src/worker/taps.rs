//! The taps of a worker: when they run, and what they are notified of.
//!
//! A tap that skips a number of packets of an interface is not called for these. A frame that no
//! tap wants to see costs one comparison: the interface's packet counter, which is incremented
//! anyway, against the count at which a tap is due.

use super::{Core, DEVICE_INPUT, INTERFACE_OUTPUT};
use crate::clock;
use crate::decl::{ArcId, NodeId};
use crate::node::{Copies, Fate, MAX_SKIP, NEEDED, Tap, TapCx};
use crate::stats::{MAX_INTERFACES, WorkerStats};
use std::time::Duration;
use thalweg_buffer::{Frame, Iface, Packet, PacketKey, SwIfIndex};
use thalweg_tables::prefetch::Line;
use thalweg_tables::{SparseArray, SparseMemory, zeroable};

/// The count at which no tap is due.
const NEVER: u64 = u64::MAX;
/// Arcs with gates: the first ones, by index.
const GATED: [ArcId; 2] = [DEVICE_INPUT, INTERFACE_OUTPUT];
/// Index of `device-input`.
pub(super) const RX: usize = DEVICE_INPUT.0 as usize;
/// Index of `interface-output`.
pub(super) const TX: usize = INTERFACE_OUTPUT.0 as usize;
/// Maximum time between publications of what taps have counted.
const SETTLE: Duration = Duration::from_millis(1);

/// After the first calls, one call in `TIMED` is timed and weighted by it: reading the clock twice
/// costs about as much as taking a sample.
const TIMED: u32 = 64;
/// Number of first calls that are each timed.
const FIRST: u32 = 16;

/// Fields that a call needs come first, on one cache line: it may have left the nearest cache by
/// the next.
#[repr(C, align(64))]
struct TapSlot {
    tap: Box<dyn Tap>,
    /// Calls, and packets in them, that are not in the node's counters yet.
    calls: u32,
    packets: u32,
    /// Number of calls up to and including the next that is timed.
    until_timed: u32,
    cx: TapCx,
    /// Number of calls that have been timed.
    timed: u32,
    node: NodeId,
}

zeroable! {
    /// State of an interface on an arc whose taps run now and then; all zero if it has none. Each
    /// frame checks `due`, so that the other fields, on the same line, are cached when a tap is
    /// due, which is unpredictable.
    #[derive(Clone, Copy, Default)]
    #[repr(align(64))]
    struct Gate {
        /// Packet count of the interface at which taps are due, inverted.
        not_due: u64,
        /// Packet count of the interface when taps last ran, or were last notified of skipped
        /// packets.
        mark: u64,
        /// Lines of the only tap, which may have left the nearest cache by the time: its slot, and
        /// its own lines. The slot leads to the lines; from here they are all prefetched at once.
        needs: [Line; 1 + NEEDED],
        /// Bitmap of the taps.
        taps: u32,
        /// Slot of the tap, if there is exactly one; else out of range.
        only: u16,
        /// True if `needs` is known.
        knows_needs: bool,
        /// Position among the open ones.
        place: u32,
    }
}

const _: () = assert!(size_of::<Gate>() == 64);

const SEVERAL: u32 = u32::MAX;

impl Gate {
    #[inline(always)]
    fn due(&self) -> u64 {
        !self.not_due
    }
    #[inline(always)]
    fn set_due(&mut self, count: u64) {
        self.not_due = !count;
    }
}

/// The gates of an arc.
type Gates = SparseArray<Gate, MAX_INTERFACES>;

/// All taps of a worker.
pub(super) struct Taps {
    slots: Vec<TapSlot>,
    /// Position in `slots` of the tap that marks packets, if there is exactly one; else out of
    /// range.
    marker: u32,
    /// Positions of all taps that mark packets.
    marking: Vec<u32>,
    /// Positions in `slots` by arc and bit.
    on: Vec<Vec<usize>>,
    /// Gates by arc and interface.
    gates: [Gates; GATED.len()],
    /// Gates that are not closed.
    open: Vec<(usize, SwIfIndex)>,
    /// True if a tap was installed: open gates may refer to the one that was there.
    stale: bool,
    /// True if a tap was called since taps were settled.
    unsettled: bool,
    /// Time when taps are settled next if packets keep coming; and the interval, in ticks.
    settle_at: u64,
    every: u64,
}

impl TapSlot {
    /// Sets up the context of a call.
    #[inline]
    fn place(&mut self, now: u64, arc: ArcId) -> (&mut dyn Tap, &mut TapCx) {
        (self.cx.now, self.cx.arc, self.cx.skip) = (now, arc, 0);
        (&mut *self.tap, &mut self.cx)
    }

    /// Runs the tap on a frame; returns the number of packets that it skips after it.
    #[inline(always)]
    fn look(
        &mut self,
        (now, arc): (u64, ArcId),
        frame: &mut Frame,
        work: impl FnOnce(&mut dyn Tap, &mut TapCx, &mut Frame),
    ) -> u64 {
        self.calls += 1;
        self.packets += frame.len() as u32;
        self.until_timed -= 1;
        let is_timed = self.until_timed == 0;
        let (tap, cx) = self.place(now, arc);
        if is_timed {
            self.timed(|tap, cx| work(tap, cx, frame));
        } else {
            work(tap, cx, frame);
        }
        self.cx.skip
    }

    #[cold]
    fn timed(&mut self, work: impl FnOnce(&mut dyn Tap, &mut TapCx)) {
        let stands_for = if self.timed < FIRST { 1 } else { TIMED };
        self.timed = (self.timed + 1).min(FIRST);
        self.until_timed = if self.timed < FIRST { 1 } else { TIMED };
        let began = clock::cycles();
        work(&mut *self.tap, &mut self.cx);
        let clocks = clock::cycles() - began;
        self.cx.stats.node(self.node).clocks.add(clocks * u64::from(stands_for));
    }

    /// Publishes what the tap has counted.
    fn settle(&mut self, now: u64) {
        let stats = self.cx.stats.node(self.node);
        stats.calls.add(std::mem::take(&mut self.calls).into());
        stats.vectors.add(std::mem::take(&mut self.packets).into());
        let (tap, cx) = self.place(now, DEVICE_INPUT);
        tap.settle(cx);
    }
}

impl Default for Taps {
    fn default() -> Taps {
        Taps {
            slots: Vec::new(),
            marker: SEVERAL,
            marking: Vec::new(),
            on: Vec::new(),
            gates: Default::default(),
            open: Vec::new(),
            stale: false,
            unsettled: false,
            settle_at: 0,
            every: clock::ticks_in(SETTLE),
        }
    }
}

impl Taps {
    /// Puts a tap onto its arcs, or replaces it there.
    pub(super) fn install(
        &mut self,
        node: NodeId,
        cx: TapCx,
        tap: Box<dyn Tap>,
        places: &[(ArcId, u16)],
    ) {
        let at = self.slots.len();
        if tap.marks() {
            self.marking.push(at as u32);
            self.marker = if self.marking.len() == 1 { at as u32 } else { SEVERAL };
        }
        self.slots.push(TapSlot { tap, cx, node, calls: 0, packets: 0, until_timed: 1, timed: 0 });
        self.stale = true;
        for (arc, bit) in places {
            let (arc, bit) = (arc.0 as usize, usize::from(*bit));
            if self.on.len() <= arc {
                self.on.resize_with(arc + 1, Vec::new);
            }
            let row = &mut self.on[arc];
            if row.len() <= bit {
                row.resize(bit + 1, at);
            }
            row[bit] = at;
        }
    }

    /// Drops all taps.
    pub(super) fn clear(&mut self) {
        *self = Taps::default();
    }

    /// Returns true if a frame on arc `A` after which the interface's packet count is `count` must
    /// be shown to taps.
    #[inline]
    pub(super) fn due<const A: usize>(&self, sw_if: SwIfIndex, count: u64, offload: bool) -> bool {
        let due = self.gates[A].at(sw_if).due();
        // A GSO packet is not counted as its segments: taps have to see it.
        count >= due || (offload && due != NEVER)
    }

    /// Notes that packets were counted which no tap sees: they are no part of what taps skip.
    pub(super) fn let_pass<const A: usize>(&mut self, sw_if: SwIfIndex, packets: u64) {
        if self.gates[A].at(sw_if).taps == 0 {
            return;
        }
        let gate = self.gates[A].at_mut(sw_if);
        gate.mark += packets;
        if gate.due() > 0 {
            gate.set_due(gate.due() + packets);
        }
    }

    /// Returns the slot of a tap of an arc.
    #[inline]
    fn slot(&mut self, arc: ArcId, bit: usize) -> Option<&mut TapSlot> {
        self.on.get(arc.0 as usize)?.get(bit).and_then(|at| self.slots.get_mut(*at))
    }

    /// Notifies taps that mark packets.
    #[inline]
    fn markers(&mut self, notify: impl Fn(&mut dyn Tap)) {
        self.unsettled = true;
        match self.slots.get_mut(self.marker as usize) {
            Some(slot) => notify(&mut *slot.tap),
            None => self.each_marker(notify),
        }
    }

    /// The function is out of line, so that notifying one, the usual case, needs no registers for a
    /// loop.
    #[cold]
    #[inline(never)]
    fn each_marker(&mut self, notify: impl Fn(&mut dyn Tap)) {
        self.marking.iter().for_each(|at| notify(&mut *self.slots[*at as usize].tap));
    }

    /// Notifies taps of the packets that have passed a gate.
    fn report_gate(&mut self, stats: &WorkerStats, now: u64, (a, sw_if): (usize, SwIfIndex)) {
        let arc = ArcId(a as u8);
        let gate = self.gates[a].at_mut(sw_if);
        let count = packets(stats, a, sw_if);
        let passed = count - std::mem::replace(&mut gate.mark, count);
        if passed == 0 {
            return;
        }
        let mask = gate.taps;
        for bit in bits(mask) {
            if let Some(slot) = self.slot(arc, bit) {
                let (tap, cx) = slot.place(now, arc);
                tap.passed(cx, sw_if, passed);
            }
        }
        self.unsettled = true;
    }

    /// Writes a gate.
    fn fill_gate(
        &mut self,
        stats: &WorkerStats,
        (a, sw_if): (usize, SwIfIndex),
        mask: u32,
        place: u32,
    ) {
        let mut gate = Gate::default();
        if mask != 0 {
            let row = self.on.get(a).map_or(&[][..], |row| row);
            let first = row.get(mask.trailing_zeros() as usize).copied();
            let only = first.filter(|_| mask.is_power_of_two());
            gate.only = only.and_then(|at| u16::try_from(at).ok()).unwrap_or(u16::MAX);
            (gate.mark, gate.taps, gate.place) = (packets(stats, a, sw_if), mask, place);
            gate.set_due(0);
            let slot = self.slots.get(usize::from(gate.only));
            if let Some((slot, lines)) = slot.and_then(|s| Some((s, s.tap.lines(sw_if)?))) {
                gate.needs[0] = Line::of(slot);
                gate.needs[1..].copy_from_slice(&lines);
                gate.knows_needs = true;
            }
        }
        *self.gates[a].at_mut(sw_if) = gate;
    }

    /// Returns handles to the memory of the gates.
    pub(super) fn memory(&self) -> [SparseMemory; GATED.len()] {
        std::array::from_fn(|a| self.gates[a].memory())
    }

    /// Runs several taps, or none, on a frame after `passed` skipped packets.
    #[cold]
    fn look_all(
        &mut self,
        (now, arc): (u64, ArcId),
        mask: u32,
        (sw_if, passed): (SwIfIndex, u64),
        frame: &mut Frame,
    ) -> u64 {
        let mut skip = MAX_SKIP;
        for bit in bits(mask) {
            if let Some(slot) = self.slot(arc, bit) {
                skip = skip.min(slot.look((now, arc), frame, |tap, cx, frame| {
                    tap.passed_and_frame(cx, (sw_if, passed), frame);
                }));
            }
        }
        skip
    }
}

/// Returns the indices of the bits that are set.
fn bits(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

/// Returns the number of packets received or sent by an interface.
#[inline]
fn packets(stats: &WorkerStats, arc: usize, sw_if: SwIfIndex) -> u64 {
    let i = stats.interface(sw_if);
    if arc == 0 { i.rx_packets.get() } else { i.tx_packets.get() }
}

impl Core {
    /// Runs the taps of an interface on a frame on arc `A`, with which its packet count is `count`.
    #[inline(never)]
    pub(super) fn run_gate<const A: usize>(
        &mut self,
        sw_if: SwIfIndex,
        count: u64,
        frame: &mut Frame,
    ) {
        let (now, taps, arc) = (self.now, &mut self.taps, GATED[A]);
        let gate = taps.gates[A].at_mut(sw_if);
        if gate.knows_needs {
            gate.needs.iter().for_each(|line| line.fetch());
        }
        taps.unsettled = true;
        let passed = count - frame.len() as u64 - gate.mark;
        gate.mark = count;
        let (only, mask) = (usize::from(gate.only), gate.taps);
        let skip = match taps.slots.get_mut(only) {
            Some(slot) => slot.look((now, arc), frame, |tap, cx, frame| {
                tap.passed_and_frame(cx, (sw_if, passed), frame);
            }),
            None => taps.look_all((now, arc), mask, (sw_if, passed), frame),
        };
        taps.gates[A].at_mut(sw_if).set_due(count + skip + 1);
    }

    /// Runs the taps of `mask` on a frame on an arc without gates.
    #[inline(never)]
    pub(super) fn run_taps(&mut self, arc: ArcId, mask: u32, frame: &mut Frame, on: Iface) {
        let (now, taps) = (self.now, &mut self.taps);
        for bit in bits(mask) {
            if let Some(slot) = taps.slot(arc, bit) {
                slot.look((now, arc), frame, |tap, cx, frame| tap.frame(cx, frame, on));
            }
        }
        taps.unsettled = true;
    }

    /// Notifies taps of the disposition of the sampled packets of a frame.
    #[inline(never)]
    pub(super) fn sampled_end(&mut self, frame: &Frame, fate: Fate) {
        self.taps.markers(|tap| tap.ends(frame, fate));
    }

    /// Notifies taps that a sampled packet was delivered to the router itself.
    #[cold]
    pub(super) fn sampled_delivered(&mut self, key: PacketKey, sample_id: u32) {
        self.taps.markers(|tap| tap.delivered(key, sample_id));
    }

    /// Notifies taps that a sampled packet leaves by several interfaces.
    #[cold]
    pub(super) fn sampled_copied(&mut self, key: PacketKey, sample_id: u32, copies: Copies) {
        self.taps.markers(|tap| tap.copied(key, sample_id, copies));
    }

    /// Notifies taps that a sampled packet was freed.
    #[cold]
    pub(super) fn sampled_gone(&mut self, key: PacketKey) {
        self.taps.markers(|tap| tap.gone(key));
    }

    /// Notifies taps that a packet replaces a sampled one.
    #[cold]
    pub(super) fn sampled_replaced(&mut self, old: &Packet, new: &Packet) {
        self.taps.markers(|tap| tap.replaced(old.key(), new.key()));
    }

    /// Opens or closes the gate of an interface on an arc, for the taps of `mask`.
    pub(super) fn set_gate(&mut self, arc: ArcId, sw_if: SwIfIndex, mask: u32) {
        let a = arc.0 as usize;
        if a >= GATED.len() {
            return;
        }
        let Core { taps, stats, now, .. } = self;
        let gate = *taps.gates[a].at(sw_if);
        let mut place = gate.place;
        match (gate.taps, mask) {
            (0, 0) => return,
            (0, _) => {
                place = taps.open.len() as u32;
                taps.open.push((a, sw_if));
            }
            (_, 0) => {
                taps.report_gate(stats, *now, (a, sw_if));
                taps.open.swap_remove(place as usize);
                if let Some((a, sw_if)) = taps.open.get(place as usize).copied() {
                    taps.gates[a].at_mut(sw_if).place = place;
                }
            }
            _ => taps.report_gate(stats, *now, (a, sw_if)),
        }
        taps.fill_gate(stats, (a, sw_if), mask, place);
    }

    /// Returns handles to the memory of the gates.
    pub(super) fn gate_memory(&self) -> [SparseMemory; GATED.len()] {
        self.taps.memory()
    }

    /// Follows taps that were installed.
    #[inline]
    pub(super) fn follow_taps(&mut self) {
        if self.taps.stale {
            self.reopen();
        }
    }

    #[cold]
    fn reopen(&mut self) {
        self.report_passed();
        let Core { taps, stats, .. } = self;
        taps.stale = false;
        for at in 0..taps.open.len() {
            let (a, sw_if) = taps.open[at];
            let mask = taps.gates[a].at(sw_if).taps;
            taps.fill_gate(stats, (a, sw_if), mask, at as u32);
        }
    }

    /// Notifies taps of the packets that they skipped.
    fn report_passed(&mut self) {
        let (stats, now, taps) = (&self.stats, self.now, &mut self.taps);
        for at in 0..taps.open.len() {
            taps.report_gate(stats, now, taps.open[at]);
        }
    }

    /// Settles taps now and then, after a loop with packets.
    #[inline]
    pub(super) fn taps_after_work(&mut self) {
        if self.now >= self.taps.settle_at {
            self.settle_taps();
        }
    }

    /// Publishes what taps have counted.
    pub(super) fn settle_taps(&mut self) {
        self.taps.settle_at = self.now + self.taps.every;
        if self.taps.open.is_empty() && !self.taps.unsettled {
            return;
        }
        self.report_passed();
        if std::mem::take(&mut self.taps.unsettled) {
            self.taps.slots.iter_mut().for_each(|slot| slot.settle(self.now));
        }
    }

    /// Passes a message on to a tap, if `node` is one, and makes its gates due: it may want to skip
    /// fewer packets than before.
    pub(super) fn tap_message(&mut self, node: NodeId, message: Box<dyn std::any::Any + Send>) {
        self.settle_taps();
        let Taps { slots, open, gates, .. } = &mut self.taps;
        if let Some(slot) = slots.iter_mut().rev().find(|slot| slot.node == node) {
            slot.tap.message(message);
            for (arc, sw_if) in open.iter() {
                gates[*arc].at_mut(*sw_if).set_due(0);
            }
        }
    }
}
