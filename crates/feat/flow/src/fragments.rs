//! Datagrams in parts: those behind the first, which have no ports, are to the tracker what the first was.
//!
//! Before rules are followed, a later fragment waits until its first has come, unless no rule could have it
//! tracked; it goes to the worker to which the first went. All fragments of a datagram have to come to one worker,
//! as they do if they come by one interface with one queue.

use thalweg_buffer::{Packet, PktMut};
use thalweg_conntrack::batch::Kind;
use thalweg_conntrack::{FirstFragment, Fragment, IPV4, Millis, Tracked, Tracker};
use thalweg_graph::{HandOff, NodeCx, Verdict};
use thalweg_tables::fragments;
pub(crate) use thalweg_tables::fragments::PATIENCE;

use crate::nodes::flow_rules::{ALONE, Engine, TOO_MANY, Walk};
use crate::outputs::Outputs;
use crate::tables::Step;

/// Which part of its datagram a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    First,
    Later,
}

/// What became of a first fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Rules were followed here.
    Here,
    /// It went to another worker.
    Worker(u16),
    /// The tracker has said something about it, in a zone. Its data ended here.
    Tracked(FirstFragment<IPV4>, u16),
}

/// What a worker knows of datagrams in parts.
pub(crate) struct Fragments(fragments::Fragments<Fate, Packet>);

impl Fragments {
    pub(crate) fn new(seed: u64) -> Fragments {
        Fragments(fragments::Fragments::new(seed))
    }

    /// The tracker has said something about a first fragment.
    #[cold]
    pub(crate) fn tracked(
        &mut self,
        zone: u16,
        out: &Outputs<'_>,
        said: FirstFragment<IPV4>,
        now: Millis,
    ) {
        if let Some(part) = out.ipv4().and_then(|(l3, _)| Fragment::read(zone, l3)) {
            self.0.note(part.key, Fate::Tracked(said, part.data.1 as u16), now);
        }
    }

    /// What a later fragment is to the tracker. One that would write over what the first has said is invalid.
    pub(crate) fn follow(
        &self,
        tracker: &mut Tracker<IPV4>,
        zone: u16,
        out: &Outputs<'_>,
        now: Millis,
    ) -> Tracked {
        let found = out.ipv4().and_then(|(l3, bytes)| {
            let part = Fragment::read(zone, l3)?;
            match self.0.find(&part.key, now)? {
                Fate::Tracked(first, end) if part.data.0 >= usize::from(end) => {
                    Some((first, bytes))
                }
                _ => None,
            }
        });
        match found {
            Some((first, bytes)) => tracker.follow(&first, bytes as u32, now),
            None => tracker.stray_fragment(),
        }
    }
}

impl Engine {
    /// Follows rules with a packet of a frame that has fragments in it.
    #[cold]
    pub(crate) fn with_fragments(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        hand_off: &HandOff,
        p: PktMut<'_>,
    ) -> Verdict {
        let part = {
            let data = p.data();
            let l3 = crate::rewrite::ipv4_at(data).and_then(|at| data.get(at..));
            l3.and_then(|l3| Fragment::read(0, l3)).map(|part| (part.anywhere(), part.is_first()))
        };
        let is_later = self.batch.headers(walk.i).is_some_and(|h| h.kind == Kind::Fragment);
        match part {
            Some((key, false)) if is_later => self.later(cx, walk, hand_off, p, key),
            Some((key, true)) => {
                let (verdict, fate) = match self.owner(hand_off, walk.i) {
                    Some(owner) => (hand_off.to(owner), Fate::Worker(owner as u16)),
                    None => {
                        self.part = Part::First;
                        let verdict = self.steps(cx, walk, p);
                        self.part = Part::Whole;
                        (verdict, Fate::Here)
                    }
                };
                self.fragments.0.note(key, fate, self.now);
                // Those that were early come to this node again, or to the other worker's.
                while let Some(early) = self.fragments.0.next_of(&key, |_| true) {
                    let to = match fate {
                        Fate::Worker(owner) => usize::from(owner),
                        _ => self.worker,
                    };
                    cx.hand_off(early, hand_off, to);
                }
                verdict
            }
            _ => match self.owner(hand_off, walk.i) {
                Some(owner) => hand_off.to(owner),
                None => self.steps(cx, walk, p),
            },
        }
    }

    /// A fragment behind the first.
    fn later(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        hand_off: &HandOff,
        p: PktMut<'_>,
        key: fragments::Key,
    ) -> Verdict {
        match self.fragments.0.find(&key, self.now) {
            Some(Fate::Worker(owner)) => return hand_off.to(usize::from(owner)),
            None if self.may_track(walk) => {
                if !self.fragments.0.has_room(&key) {
                    return Verdict::drop(TOO_MANY);
                }
                let (packet, kept) = cx.take(p);
                self.fragments.0.wait(key, self.now, packet);
                return kept;
            }
            _ => {}
        }
        self.part = Part::Later;
        let verdict = self.steps(cx, walk, p);
        self.part = Part::Whole;
        verdict
    }

    /// Whether the rule that a packet meets first may ask the tracker about it.
    fn may_track(&mut self, walk: &Walk<'_>) -> bool {
        let Some(table) = walk.set.table(0) else { return false };
        let (rule, _) = table.classifier.find_needed(&self.words[walk.i]);
        let steps = rule.map_or(&[][..], |rule| &table.rules[rule as usize].steps);
        steps.iter().any(|step| matches!(step, Step::Ct(_) | Step::Resubmit(..)))
    }

    /// Drops fragments that have waited for long enough.
    #[inline]
    pub(crate) fn drop_overdue(&mut self, cx: &mut NodeCx<'_>) {
        while let Some(packet) = self.fragments.0.next_overdue(self.now, false) {
            cx.send(packet, Verdict::drop(ALONE));
        }
    }
}
