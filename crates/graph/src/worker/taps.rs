//! The taps of a worker: when they look, and what they are told.
//!
//! A tap that has said how many packets of an interface it need not see is not called for these.
//! What a frame costs that no tap wants to see is one comparison: the interface's packet counter,
//! which is counted up anyway, against the count at which a tap is due.

use super::{Core, DEVICE_INPUT, INTERFACE_OUTPUT};
use crate::arc::ArcTable;
use crate::clock;
use crate::decl::{ArcId, NodeId};
use crate::node::{Fate, Tap, TapCx};
use crate::stats::{MAX_INTERFACES, WorkerStats};
use std::time::Duration;
use thalweg_buffer::{Frame, Iface, Packet, PacketKey};

/// The count at which nobody is due.
const NEVER: u64 = u64::MAX;
/// Arcs with gates: the first ones.
const GATED: [ArcId; 2] = [DEVICE_INPUT, INTERFACE_OUTPUT];
/// How long taps go on without bringing up to date what others see of them.
const SETTLE: Duration = Duration::from_millis(1);

struct TapSlot {
    tap: Box<dyn Tap>,
    node: NodeId,
    error_base: u32,
    /// Calls in which there was work.
    worked: u64,
}

/// An interface on an arc whose taps look now and then.
#[derive(Clone, Copy, Default)]
struct Watch {
    /// The interface's packets when taps last looked, or were told of what has passed.
    mark: u64,
    /// Which taps, one bit each.
    taps: u32,
}

/// All taps of a worker.
pub(super) struct Taps {
    slots: Vec<TapSlot>,
    /// Positions in `slots` by arc and bit.
    on: Vec<Vec<usize>>,
    /// The packet count of an interface at which taps are due, by arc.
    due: [Box<[u64; MAX_INTERFACES]>; GATED.len()],
    watch: [Box<[Watch; MAX_INTERFACES]>; GATED.len()],
    /// Gates that are not closed.
    open: Vec<(usize, u32)>,
    /// The arcs that these gates stand for.
    generation: u64,
    /// Some tap was called since taps were settled.
    unsettled: bool,
    /// When taps are settled, should packets keep coming; and how long until the next time, in ticks.
    settle_at: u64,
    every: u64,
}

/// What a tap's context is made of.
#[derive(Clone, Copy)]
struct Place<'w> {
    stats: &'w WorkerStats,
    index: usize,
    now: u64,
}

impl TapSlot {
    /// Calls the tap; returns how many packets it need not see.
    #[inline]
    fn call(
        &mut self,
        place: Place<'_>,
        arc: ArcId,
        work: impl FnOnce(&mut dyn Tap, &mut TapCx<'_>),
    ) -> (u64, Option<(u64, u64)>) {
        let mut cx = TapCx {
            stats: place.stats,
            index: place.index,
            now: place.now,
            arc,
            error_base: self.error_base,
            worked: &mut self.worked,
            timed: None,
            rest: 0,
        };
        work(&mut *self.tap, &mut cx);
        (cx.rest, cx.timed)
    }

    /// Lets the tap look at a frame; returns how many packets it need not see after it.
    #[inline]
    fn look(
        &mut self,
        place: Place<'_>,
        arc: ArcId,
        frame: &mut Frame,
        work: impl FnOnce(&mut dyn Tap, &mut TapCx<'_>, &mut Frame),
    ) -> u64 {
        let (rest, timed) = self.call(place, arc, |tap, cx| work(tap, cx, frame));
        let stats = place.stats.node(self.node);
        stats.calls.add(1);
        stats.vectors.add(frame.len() as u64);
        if let Some((began, calls)) = timed {
            stats.clocks.add((clock::ticks() - began) * calls);
        }
        rest
    }
}

fn boxed<T: Copy>(value: T) -> Box<[T; MAX_INTERFACES]> {
    // Not by way of the stack: these are tens of kilobytes.
    let all: Box<[T]> = vec![value; MAX_INTERFACES].into_boxed_slice();
    all.try_into().unwrap_or_else(|_| unreachable!("as many as asked for"))
}

impl Default for Taps {
    fn default() -> Taps {
        Taps {
            slots: Vec::new(),
            on: Vec::new(),
            due: [boxed(NEVER), boxed(NEVER)],
            watch: [boxed(Watch::default()), boxed(Watch::default())],
            open: Vec::new(),
            generation: 0,
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
        error_base: u32,
        tap: Box<dyn Tap>,
        places: &[(ArcId, u16)],
    ) {
        let at = self.slots.len();
        self.slots.push(TapSlot { tap, node, error_base, worked: 0 });
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

    /// True if a frame after which the interface's packets are `count` has to be shown to taps.
    #[inline]
    pub(super) fn due(&self, arc: ArcId, sw_if: u32, count: u64, offload: bool) -> bool {
        let due = self.due[arc.0 as usize][sw_if as usize % MAX_INTERFACES];
        // What stands for several packets on the wire is not counted as such: taps have to look.
        count >= due || (offload && due != NEVER)
    }

    fn told(&mut self, place: Place<'_>, gate: (usize, u32)) {
        let (arc, sw_if) = gate;
        let watch = &mut self.watch[arc][sw_if as usize];
        let count = packets(place.stats, arc, sw_if);
        let passed = count - std::mem::replace(&mut watch.mark, count);
        if passed > 0 {
            let mut mask = watch.taps;
            while mask != 0 {
                let bit = mask.trailing_zeros() as usize;
                mask &= mask - 1;
                if let Some(slot) = self.on[arc].get(bit).and_then(|at| self.slots.get_mut(*at)) {
                    slot.call(place, ArcId(arc as u8), |tap, cx| tap.passed(cx, sw_if, passed));
                }
            }
            self.unsettled = true;
        }
    }
}

/// Packets that have come by an interface, or gone.
#[inline]
fn packets(stats: &WorkerStats, arc: usize, sw_if: u32) -> u64 {
    let i = stats.interface(sw_if);
    if arc == 0 { i.rx_packets.get() } else { i.tx_packets.get() }
}

impl Core {
    #[inline]
    fn with_taps<R>(&mut self, work: impl FnOnce(&mut Taps, Place<'_>) -> R) -> R {
        let place = Place { stats: &self.stats, index: self.index, now: self.now };
        work(&mut self.taps, place)
    }

    /// Lets the taps of an interface look at a frame, which is in its packet counter already.
    #[inline(never)]
    pub(super) fn run_gate(&mut self, arc: ArcId, sw_if: u32, frame: &mut Frame) {
        self.with_taps(|taps, place| {
            let a = arc.0 as usize;
            let at = sw_if as usize % MAX_INTERFACES;
            let watch = &mut taps.watch[a][at];
            let count = packets(place.stats, a, sw_if);
            let passed = count - frame.len() as u64 - watch.mark;
            watch.mark = count;
            let (mut mask, mut rest) = (watch.taps, u64::MAX);
            while mask != 0 {
                let bit = mask.trailing_zeros() as usize;
                mask &= mask - 1;
                let Some(slot) = taps.on[a].get(bit).and_then(|at| taps.slots.get_mut(*at)) else {
                    continue;
                };
                let here = slot.look(place, arc, frame, |tap, cx, frame| {
                    tap.passed_and_frame(cx, (sw_if, passed), frame);
                });
                rest = rest.min(here);
            }
            taps.due[a][at] = count.saturating_add(rest).saturating_add(1).min(NEVER - 1);
            taps.unsettled = true;
        });
    }

    /// Lets the taps of `mask` look at a frame on an arc without gates.
    #[inline(never)]
    pub(super) fn run_taps(&mut self, arc: ArcId, mut mask: u32, frame: &mut Frame, on: Iface) {
        self.with_taps(|taps, place| {
            while mask != 0 {
                let bit = mask.trailing_zeros() as usize;
                mask &= mask - 1;
                let row = taps.on.get(arc.0 as usize);
                let at = row.and_then(|row| row.get(bit)).copied().unwrap_or(usize::MAX);
                if let Some(slot) = taps.slots.get_mut(at) {
                    slot.look(place, arc, frame, |tap, cx, frame| tap.frame(cx, frame, on));
                }
            }
            taps.unsettled = true;
        });
    }

    /// Tells taps what becomes of the sampled packets of a frame.
    #[inline(never)]
    pub(super) fn sampled_end(&mut self, frame: &Frame, fate: Fate) {
        self.with_taps(|taps, place| {
            for slot in &mut taps.slots {
                slot.call(place, DEVICE_INPUT, |tap, cx| tap.ends(cx, frame, fate));
            }
            taps.unsettled = true;
        });
    }

    /// Tells taps that a sampled packet was delivered to the router itself.
    #[cold]
    pub(super) fn sampled_delivered(&mut self, key: PacketKey, asked_as: u32) {
        self.taps.slots.iter_mut().for_each(|slot| slot.tap.delivered(key, asked_as));
        self.taps.unsettled = true;
    }

    /// Tells taps that a sampled packet leaves by several interfaces.
    #[cold]
    pub(super) fn sampled_copied(&mut self, key: PacketKey, asked_as: u32, outputs: u16) {
        self.taps.slots.iter_mut().for_each(|slot| slot.tap.copied(key, asked_as, outputs));
        self.taps.unsettled = true;
    }

    /// Tells taps that a packet stands for a sampled one from here on.
    #[cold]
    pub(super) fn sampled_replaced(&mut self, old: &Packet, new: &Packet) {
        self.taps.slots.iter_mut().for_each(|slot| slot.tap.replaced(old.key(), new.key()));
    }

    /// Opens and closes gates as the arcs are now.
    #[inline]
    pub(super) fn follow_arcs(&mut self, arcs: &ArcTable) {
        if arcs.generation != self.taps.generation {
            self.reopen(arcs);
        }
    }

    #[cold]
    fn reopen(&mut self, arcs: &ArcTable) {
        self.tell_taps();
        let Core { taps, stats, .. } = self;
        taps.generation = arcs.generation;
        for (arc, sw_if) in taps.open.drain(..) {
            taps.due[arc][sw_if as usize] = NEVER;
        }
        for (a, arc) in GATED.into_iter().enumerate() {
            for sw_if in 0..arcs.tap_rows(arc).min(MAX_INTERFACES) as u32 {
                let mask = arcs.taps(arc, sw_if);
                if mask != 0 {
                    let mark = packets(stats, a, sw_if);
                    taps.watch[a][sw_if as usize] = Watch { mark, taps: mask };
                    taps.due[a][sw_if as usize] = 0;
                    taps.open.push((a, sw_if));
                }
            }
        }
    }

    /// Tells taps of what has passed that they did not have to see.
    fn tell_taps(&mut self) {
        self.with_taps(|taps, place| {
            for at in 0..taps.open.len() {
                taps.told(place, taps.open[at]);
            }
        });
    }

    /// After a turn with packets: now and then, taps bring themselves up to date.
    #[inline]
    pub(super) fn taps_after_work(&mut self) {
        if self.now >= self.taps.settle_at {
            self.settle_taps();
        }
    }

    /// Has taps bring up to date what others see of them.
    pub(super) fn settle_taps(&mut self) {
        self.taps.settle_at = self.now + self.taps.every;
        if self.taps.open.is_empty() && !self.taps.unsettled {
            return;
        }
        self.tell_taps();
        if std::mem::take(&mut self.taps.unsettled) {
            self.with_taps(|taps, place| {
                for slot in &mut taps.slots {
                    slot.call(place, DEVICE_INPUT, |tap, cx| tap.settle(cx));
                }
            });
        }
    }

    /// Passes a message on to a tap, if `node` is one. It may want to look sooner than it said.
    pub(super) fn tap_message(&mut self, node: NodeId, message: Box<dyn std::any::Any + Send>) {
        self.settle_taps();
        let Taps { slots, open, due, .. } = &mut self.taps;
        if let Some(slot) = slots.iter_mut().rev().find(|slot| slot.node == node) {
            slot.tap.message(message);
            for (arc, sw_if) in open.iter() {
                due[*arc][*sw_if as usize] = 0;
            }
        }
    }
}
