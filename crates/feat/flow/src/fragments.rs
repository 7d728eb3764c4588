//! Fragments: those after the first have no ports, and share the tracking result of the first.
//!
//! A later fragment waits for its first before rules are applied, unless no rule could track it,
//! and goes to the worker that the first went to. All fragments of a datagram have to arrive at one
//! worker, as they do on an interface with one receive queue.

use thalweg_buffer::{Packet, PktMut, Search, SwIfIndex};
use thalweg_conntrack::batch::{Kind, Packets};
use thalweg_conntrack::{Batch, FirstFragment, IPV4, IPV6, Millis, Parts, Tracked, Tracker, Tuple};
use thalweg_graph::{HandOff, NodeCx, Verdict};
use thalweg_tables::fragments;
pub(crate) use thalweg_tables::fragments::PATIENCE;

use crate::ct::Families;
use crate::nodes::flow_rules::{
    Engine, FRAGMENT_TIMEOUT, INTERFACE_DELETED, TOO_MANY_FRAGMENTS, Walk,
};
use crate::outputs::Outputs;
use crate::rule::key;
use crate::tables::Step;

/// The part of its datagram that a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    First,
    Later,
}

/// The fate of a first fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate<const W: usize> {
    /// Rules were applied on this worker.
    Here,
    /// Handed over to another worker.
    Worker(u16),
    /// The tracking result in a zone, and the offset at which its data ends.
    Tracked(FirstFragment<W>, u16),
}

/// A worker's fragment table for a family.
pub(crate) struct Fragments<const W: usize>(fragments::Fragments<Fate<W>, Packet, W>);

impl<const W: usize> Fragments<W>
where
    Batch<W>: Packets<W>,
{
    pub(crate) fn new(seed: u64) -> Self {
        Fragments(fragments::Fragments::new(seed))
    }

    /// Records the tracking result of a first fragment.
    #[cold]
    pub(crate) fn tracked(
        &mut self,
        zone: u16,
        out: &Outputs<'_>,
        said: FirstFragment<W>,
        now: Millis,
    ) {
        if let Some(part) = out.l3::<W>().and_then(|(l3, _)| Batch::<W>::fragment(zone, l3)) {
            let fate = Fate::Tracked(said, part.data.1 as u16);
            self.0.note(part.key, out.rx_if().get(), fate, now);
        }
    }

    /// Tracks a later fragment; returns the tuple of its datagram as well. One that overlaps the
    /// first is invalid.
    pub(crate) fn follow(
        &self,
        tracker: &mut Tracker,
        zone: u16,
        out: &Outputs<'_>,
        now: Millis,
    ) -> (Tracked, Option<Tuple>)
    where
        Tracker: Parts<W>,
    {
        let found = out.l3::<W>().and_then(|(l3, bytes)| {
            let part = Batch::<W>::fragment(zone, l3)?;
            match self.0.find(&part.key, now)? {
                Fate::Tracked(first, end) if part.data.0 >= usize::from(end) => {
                    Some((first, bytes))
                }
                _ => None,
            }
        });
        match found {
            Some((first, bytes)) => {
                (tracker.follow(&first, bytes as u32, now), Some(first.tuple()))
            }
            None => (tracker.stray_fragment(), None),
        }
    }
}

impl Engine {
    /// Applies the rules to a packet of a frame that contains fragments.
    #[cold]
    pub(crate) fn with_fragments(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        hand_off: &HandOff,
        p: PktMut<'_>,
    ) -> Verdict {
        match key::is_ipv6(&self.words[walk.i]) {
            false => self.with_fragments_of::<IPV4>(cx, walk, hand_off, p),
            true => self.with_fragments_of::<IPV6>(cx, walk, hand_off, p),
        }
    }

    fn with_fragments_of<const W: usize>(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        hand_off: &HandOff,
        p: PktMut<'_>,
    ) -> Verdict
    where
        Self: Families<W>,
        Batch<W>: Packets<W>,
    {
        let part = {
            let data = p.data();
            let l3 = crate::rewrite::l3_at::<W>(data).and_then(|at| data.get(at..));
            l3.and_then(|l3| Batch::<W>::fragment(0, l3))
                .map(|part| (part.anywhere(), part.is_first()))
        };
        let headers = self.family().batch.headers(walk.i);
        let is_later = headers.is_some_and(|h| h.kind == Kind::Fragment);
        let rx_if = p.rx_if();
        match part {
            Some((key, false)) if is_later => self.later(cx, walk, hand_off, p, key),
            Some((key, true)) => {
                let (verdict, fate) = match self.owner(hand_off, walk.set, walk.i) {
                    Some(owner) => (hand_off.to(owner), Fate::Worker(owner as u16)),
                    None => {
                        self.part = Part::First;
                        let verdict = self.steps(cx, walk, p);
                        self.part = Part::Whole;
                        (verdict, Fate::Here)
                    }
                };
                let now = self.now;
                self.family().fragments.0.note(key, rx_if.get(), fate, now);
                // Fragments that arrived early re-enter this node, here or on the other worker.
                while let Some(mut early) = self.family().fragments.0.next_of(&key, |_| true) {
                    let to = match fate {
                        Fate::Worker(owner) => usize::from(owner),
                        _ => self.place.worker,
                    };
                    early.meta_mut().search = Search::Done;
                    cx.hand_off(early, hand_off, to);
                }
                verdict
            }
            _ => match self.owner(hand_off, walk.set, walk.i) {
                Some(owner) => hand_off.to(owner),
                None => self.steps(cx, walk, p),
            },
        }
    }

    /// Handles a fragment other than the first.
    fn later<const W: usize>(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        hand_off: &HandOff,
        mut p: PktMut<'_>,
        key: fragments::Key<W>,
    ) -> Verdict
    where
        Self: Families<W>,
    {
        let now = self.now;
        // Two first fragments of one id may have sent each other's parts to two workers: the second
        // one decides.
        let was_sent = p.take_search() == Search::Done;
        match self.family().fragments.0.find(&key, now) {
            Some(Fate::Worker(owner)) if !was_sent => {
                p.meta_mut().search = Search::Done;
                return hand_off.to(usize::from(owner));
            }
            None if self.may_track(walk) => {
                let of = p.rx_if().get();
                let Ok(instead) = self.family().fragments.0.make_room(&key, of) else {
                    return Verdict::drop(TOO_MANY_FRAGMENTS);
                };
                if let Some(packet) = instead {
                    cx.send(packet, Verdict::drop(TOO_MANY_FRAGMENTS));
                }
                let (packet, kept) = cx.take(p);
                self.family().fragments.0.wait(key, of, now, packet);
                return kept;
            }
            _ => {}
        }
        self.part = Part::Later;
        let verdict = self.steps(cx, walk, p);
        self.part = Part::Whole;
        verdict
    }

    /// Returns whether the rule that a packet matches in table 0 may track it.
    fn may_track(&mut self, walk: &Walk<'_>) -> bool {
        let Some(table) = walk.set.table(0) else { return false };
        let (rule, _) = table.classifier.find_needed(&self.words[walk.i]);
        let rule = rule.and_then(|rule| table.rule(rule));
        let steps = rule.map_or(&[][..], |rule| &rule.steps);
        steps.iter().any(|step| matches!(step, Step::Ct(_) | Step::Resubmit(..)))
    }

    /// Drops fragments that wait and came from an interface that is deleted: another one may have
    /// its index before they go on.
    pub(crate) fn drop_of(&mut self, cx: &mut NodeCx<'_>, gone: SwIfIndex) {
        let of = |packet: &Packet| packet.rx_if() == gone;
        while let Some(packet) = self.v4.fragments.0.next_unwanted(of) {
            cx.send(packet, Verdict::drop(INTERFACE_DELETED));
        }
        while let Some(packet) = self.v6.fragments.0.next_unwanted(of) {
            cx.send(packet, Verdict::drop(INTERFACE_DELETED));
        }
    }

    /// Drops fragments that have waited too long.
    #[inline]
    pub(crate) fn drop_overdue(&mut self, cx: &mut NodeCx<'_>) {
        let now = self.now;
        while let Some(packet) = self.v4.fragments.0.next_overdue(now, false) {
            cx.send(packet, Verdict::drop(FRAGMENT_TIMEOUT));
        }
        while let Some(packet) = self.v6.fragments.0.next_overdue(now, false) {
            cx.send(packet, Verdict::drop(FRAGMENT_TIMEOUT));
        }
    }
}
