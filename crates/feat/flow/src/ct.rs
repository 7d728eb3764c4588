//! The `ct` action: tracks, commits and translates a packet of either family.

use thalweg_conntrack::batch::Packets;
use thalweg_conntrack::{
    Batch, Checks, Commit, FirstFragment, IPV4, IPV6, Parts, State, Tracked, Tracker,
};
use thalweg_graph::NodeCx;
use thalweg_tables::hash::random_seed;

use crate::fragments::{Fragments, Part};
use crate::megaflow::MegaflowCache;
use crate::nodes::flow_rules::{Engine, NO_TRANSLATION, Next, Walk};
use crate::outputs::Outputs;
use crate::rewrite;
use crate::rule::Ct;
use crate::rule::key::{self, Words};
use crate::tables::Compilation;

/// A worker's buffers for the packets of a family.
pub(crate) struct Family<const W: usize> {
    /// The packets of a frame; those of the other family cannot be tracked here.
    pub(crate) batch: Batch<W>,
    /// Batch of a packet that is tracked in another zone.
    single: Batch<W>,
    pub(crate) fragments: Fragments<W>,
}

impl<const W: usize> Family<W>
where
    Batch<W>: Packets<W>,
{
    pub(crate) fn new() -> Self {
        Family {
            batch: Batch::default(),
            single: Batch::default(),
            fragments: Fragments::new(random_seed()),
        }
    }
}

/// Access to the family whose keys have `W` words.
pub(crate) trait Families<const W: usize> {
    fn family(&mut self) -> &mut Family<W>;
    /// The family, and what is used with it.
    fn parted(&mut self) -> Parted<'_, W>;
}

/// Parts of an engine that are borrowed together.
pub(crate) struct Parted<'a, const W: usize> {
    pub(crate) family: &'a mut Family<W>,
    pub(crate) tracker: Option<&'a mut Tracker>,
    pub(crate) megaflows: &'a mut MegaflowCache,
    pub(crate) words: &'a [Words; 256],
}

impl Families<IPV4> for Engine {
    #[inline(always)]
    fn family(&mut self) -> &mut Family<IPV4> {
        &mut self.v4
    }
    #[inline(always)]
    fn parted(&mut self) -> Parted<'_, IPV4> {
        let Engine { v4: family, tracker, megaflows, words, .. } = self;
        Parted { family, tracker: tracker.as_deref_mut(), megaflows, words }
    }
}

impl Families<IPV6> for Engine {
    #[inline(always)]
    fn family(&mut self) -> &mut Family<IPV6> {
        &mut self.v6
    }
    #[inline(always)]
    fn parted(&mut self) -> Parted<'_, IPV6> {
        let Engine { v6: family, tracker, megaflows, words, .. } = self;
        Parted { family, tracker: tracker.as_deref_mut(), megaflows, words }
    }
}

impl Engine {
    /// Applies a `ct` action. Returns the next table and the tracking result. A new connection that
    /// should be translated and cannot be ends here.
    pub(crate) fn ct(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        ct: &Ct,
        words: &mut Words,
        out: &mut Outputs<'_>,
    ) -> Option<Next> {
        let ipv6 = match self.rewritten {
            false => self.is_of_ipv6(walk.i),
            true => key::is_ipv6(words),
        };
        match ipv6 {
            false => self.ct_of::<IPV4>(cx, walk, ct, words, out),
            true => self.ct_of::<IPV6>(cx, walk, ct, words, out),
        }
    }

    /// The same for a packet of a family.
    fn ct_of<const W: usize>(
        &mut self,
        cx: &mut NodeCx<'_>,
        walk: &Walk<'_>,
        ct: &Ct,
        words: &mut Words,
        out: &mut Outputs<'_>,
    ) -> Option<Next>
    where
        Self: Families<W>,
        Tracker: Parts<W>,
        Batch<W>: Packets<W>,
    {
        let mut tracked = self.track::<W>(walk, ct, out);
        if let Some(nat) = &ct.nat {
            let opens = ct.commit && nat.range.is_some();
            if (opens && tracked.flow.is_none())
                || !self.translate::<W>(cx, &mut tracked, words, out)
            {
                out.refuse(NO_TRANSLATION);
            }
            self.tracked = Some((ct.zone, W, tracked));
        }
        self.notes[walk.i].state = tracked.state;
        Some(self.next::<W>(walk.set, ct.table?, ct.zone, &tracked))
    }

    pub(crate) fn next<const W: usize>(
        &mut self,
        set: &Compilation,
        table: u8,
        zone: u16,
        tracked: &Tracked,
    ) -> Next
    where
        Tracker: Parts<W>,
    {
        if set.originals {
            self.original = match (tracked.flow, &self.tracker) {
                (Some(flow), Some(tracker)) if !tracked.state.contains(State::INVALID) => {
                    Some(tracker.original::<W>(flow))
                }
                (None, _) if tracked.state.contains(State::NEW) => self.tuple,
                _ => None,
            };
        }
        let (mark, label) = match (tracked.flow, &self.tracker) {
            (Some(flow), Some(tracker)) => (tracker.mark::<W>(flow), tracker.label::<W>(flow)),
            _ => (0, 0),
        };
        Next { table, state: tracked.state, zone, mark, label }
    }

    /// Translates a packet of a translated connection. Returns false if it cannot be translated.
    fn translate<const W: usize>(
        &mut self,
        cx: &mut NodeCx<'_>,
        tracked: &mut Tracked,
        words: &mut Words,
        out: &mut Outputs<'_>,
    ) -> bool
    where
        Tracker: Parts<W>,
    {
        let (Some(flow), Some(tracker)) = (tracked.flow, self.tracker.as_deref()) else {
            return true;
        };
        let Some(to) = tracker.translation::<W>(flow, tracked.reply) else { return true };
        tracked.state = tracked.state | tracker.translated::<W>(flow, tracked.reply);
        let is_related = tracked.state.contains(State::RELATED);
        let from = tracker.translation::<W>(flow, !tracked.reply).map(|to| to.reversed());
        let partial = out.is_partial();
        let done = out.change(cx, |data| match from {
            Some(from) if is_related && self.part == Part::Later => {
                rewrite::translate_rest(data, &from, &to)
            }
            _ => rewrite::translate(data, &to, partial),
        });
        if done && is_related {
            out.note_addresses(words);
        } else if done {
            rewrite::note(words, &to, self.part == Part::Later);
        }
        self.rewritten = true;
        done
    }

    fn track<const W: usize>(&mut self, walk: &Walk<'_>, ct: &Ct, out: &Outputs<'_>) -> Tracked
    where
        Self: Families<W>,
        Tracker: Parts<W>,
        Batch<W>: Packets<W>,
    {
        if self.part == Part::Later && self.tracker.is_some() {
            return self.track_later::<W>(ct, out);
        }
        let (i, place, salt) = (walk.i, self.place, self.salt);
        let (now, part) = (self.now, self.part);
        let (same_zone, rewritten) = (ct.zone == self.zone, self.rewritten);
        let before = self.tracked.filter(|(zone, w, _)| (*zone, *w) == (ct.zone, W));
        let has_been_tracked = self.tracked.is_some();
        let random = match &ct.nat {
            Some(nat) if ct.commit && nat.range.is_some() => self.random.bits(),
            _ => 0,
        };
        let Parted { family, tracker: Some(tracker), .. } = self.parted() else {
            let state = State::TRACKED | State::INVALID;
            return Tracked { state, ..Tracked::default() };
        };
        let Family { batch, single, fragments } = family;
        let (batch, at) = if same_zone && !rewritten {
            (batch, i)
        } else {
            single.clear();
            match out.l3::<W>().filter(|_| rewritten) {
                // The checksums were verified on arrival.
                Some((l3, bytes)) => single.add_packet(ct.zone, l3, bytes, Checks::NONE),
                None if i < batch.len() => single.add_from(batch, i, ct.zone),
                // A tag was removed, and nothing is behind it.
                None => single.add([0; W], Default::default()),
            }
            tracker.look_up(single);
            (single, 0)
        };
        debug_assert!(
            has_been_tracked || part != Part::Whole || place.is_of(batch, at),
            "{:?} is tracked elsewhere",
            batch.tuple(at)
        );
        let mut tracked = match before {
            Some((.., tracked)) => tracked,
            _ => tracker.track(batch, at, now),
        };
        if ct.commit {
            let fresh = tracked.flow.is_none() && tracked.state.contains(State::NEW);
            let range = ct.nat.as_ref().and_then(|nat| nat.range.as_ref()).filter(|_| fresh);
            let tuple = range.and_then(|_| batch.tuple(at));
            let mut reply = None;
            if let (Some(range), Some(tuple)) = (range, tuple) {
                reply = range.choose(&tuple, salt, random, |reply| {
                    place.has(reply) && !tracker.is_taken::<W>(reply, ct.zone)
                });
                if reply.is_none() {
                    tracker.count_reply_taken();
                    self.tracked = Some((ct.zone, W, tracked));
                    self.tuple = Some(tuple);
                    return tracked;
                }
            }
            let how = Commit { force: ct.force, mark: ct.mark, label: ct.label, reply };
            tracked = tracker.commit(batch, at, tracked, &how, now);
        }
        if part == Part::First {
            fragments.tracked(ct.zone, out, FirstFragment::of(batch, at, tracked), now);
        }
        let tuple = walk.set.originals.then(|| batch.tuple(at));
        self.tracked = Some((ct.zone, W, tracked));
        if let Some(tuple) = tuple {
            self.tuple = tuple;
        }
        tracked
    }

    /// Tracks a fragment other than the first: it has the first one's result, which includes the
    /// commit.
    #[cold]
    fn track_later<const W: usize>(&mut self, ct: &Ct, out: &Outputs<'_>) -> Tracked
    where
        Self: Families<W>,
        Tracker: Parts<W>,
        Batch<W>: Packets<W>,
    {
        let (now, before) = (self.now, self.tracked);
        let Parted { family, tracker: Some(tracker), .. } = self.parted() else {
            return Tracked::default();
        };
        let (tracked, tuple) = match before {
            Some((zone, w, tracked)) if (zone, w) == (ct.zone, W) => (tracked, self.tuple),
            _ => family.fragments.follow(tracker, ct.zone, out, now),
        };
        self.tuple = tuple;
        self.tracked = Some((ct.zone, W, tracked));
        tracked
    }
}
