//! The megaflow cache: recent paths through the rules, from the first table through the tracker to
//! the last step.
//!
//! A megaflow has a mask and a value: all packets that match under the mask take the same path.
//! If the rules branch on the tracker's result, a megaflow has an end for each `ct_state`. Most
//! packets thus need one comparison instead of two look-ups and the steps of two rules. Packets
//! whose path cannot be cached take each step.

use thalweg_buffer::Rows;
use thalweg_conntrack::{Commit, State};
use thalweg_graph::Verdict;

use crate::nodes::flow_rules::DROPPED_BY_RULE;
use crate::rule::Ct;
use crate::rule::key::{self, NARROW, WORDS, Words};
use crate::tables::{Compilation, Compiled, Step, Tally};

/// Packets and bytes not yet added to a rule's counters.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    packets: u64,
    bytes: u64,
}

impl Count {
    #[inline]
    fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    /// Adds the counts to the rule's counters and clears them. Returns the number of packets.
    #[inline]
    fn settle(&mut self, tally: &Tally, slot: u32) -> u64 {
        let Count { packets, bytes } = std::mem::take(self);
        if packets != 0 {
            tally.add_many(slot, packets, bytes);
        }
        packets
    }
}

/// The effect of the last rule of a megaflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// Commit that comes first, if the connection is committed.
    pub(crate) commit: Option<Commit>,
    pub(crate) verdict: Verdict,
    slot: u32,
    count: Count,
}

impl End {
    /// The effect of a rule that sends packets to at most one place and does not change them;
    /// `None` for other rules. `zone` is the zone in which the packets were tracked.
    fn of(rule: &Compiled, zone: Option<u16>) -> Option<End> {
        let (commit, rest) = match rule.steps.split_first() {
            Some((Step::Ct(ct), rest)) => {
                let plain = ct.commit && ct.table.is_none() && ct.nat.is_none();
                if !plain || zone != Some(ct.zone) {
                    return None;
                }
                let Ct { force, mark, label, .. } = *ct;
                (Some(Commit { force, mark, label, reply: None }), rest)
            }
            _ => (None, &rule.steps[..]),
        };
        let verdict = match rest {
            [] => Verdict::drop(DROPPED_BY_RULE),
            [Step::Normal] => Verdict::CONTINUE,
            [Step::Output(port)] if !port.is_indirect => Verdict::node(port.output),
            _ => return None,
        };
        Some(End { commit, verdict, slot: rule.slot, count: Count::default() })
    }
}

/// The first step of a megaflow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// No cache: packets take each step.
    Rare,
    /// The only end.
    End,
    /// The tracker, then this table.
    Track(u8),
}

/// Maximum number of ends of a megaflow. Packets mostly have one of four tracking states.
const ENDS: usize = 6;
/// Marks a state whose packets take each step.
const RARE: u8 = u8::MAX;

/// A cached path of all packets that match under a mask.
#[derive(Debug)]
pub(crate) struct Megaflow {
    /// Generation of the rules that it was made from; 0 = unused.
    generation: u64,
    mask: Words,
    value: Words,
    pub(crate) first: First,
    slot: u32,
    count: Count,
    /// Index of the end plus one, by `ct_state`; 0 = not known yet.
    by_state: [u8; 256],
    ends: [Option<End>; ENDS],
    used: usize,
}

impl Default for Megaflow {
    fn default() -> Self {
        Megaflow {
            generation: 0,
            mask: [0; WORDS],
            value: [0; WORDS],
            first: First::Rare,
            slot: 0,
            count: Count::default(),
            by_state: [0; 256],
            ends: [None; ENDS],
            used: 0,
        }
    }
}

/// The cached result for a tracking state.
pub(crate) enum Known<'a> {
    /// The packet's end.
    End(&'a mut End),
    /// No cache: packets take each step.
    Rare,
    /// Unknown until now.
    Nothing,
}

/// Compares the first `N` words.
#[inline(always)]
fn same<const N: usize>(words: &Words, mask: &Words, value: &Words) -> bool {
    (0..N).fold(0, |sum, i| sum | words[i] & mask[i] ^ value[i]) == 0
}

fn masked(words: &Words, mask: &Words) -> Words {
    std::array::from_fn(|i| words[i] & mask[i])
}

impl Megaflow {
    /// Returns whether a packet with these fields matches. The caller checks the generation.
    /// `wide`: whether the rules look at more than the narrow words.
    #[inline(always)]
    pub(crate) fn matches(&self, words: &Words, wide: bool) -> bool {
        match wide {
            false => same::<NARROW>(words, &self.mask, &self.value),
            true => same::<WORDS>(words, &self.mask, &self.value),
        }
    }

    /// Returns the packets that do not match.
    #[inline(always)]
    pub(crate) fn others(&self, words: &[Words], wide: bool) -> Rows {
        let (mask, value) = (self.mask, self.value);
        match wide {
            false => Rows::of(words.iter().map(|words| !same::<NARROW>(words, &mask, &value))),
            true => Rows::of(words.iter().map(|words| !same::<WORDS>(words, &mask, &value))),
        }
    }

    /// Counts a packet for the first rule of a path with two.
    #[inline]
    pub(crate) fn count(&mut self, bytes: u64) {
        self.count.add(bytes);
    }

    /// The end of packets that are not tracked.
    #[inline]
    pub(crate) fn only_end(&mut self) -> Option<&mut End> {
        self.ends[0].as_mut()
    }

    #[inline]
    pub(crate) fn known(&mut self, state: State) -> Known<'_> {
        let number = self.by_state[usize::from(state.bits())];
        if number == 0 {
            return Known::Nothing;
        }
        match self.ends.get_mut(usize::from(number) - 1) {
            Some(Some(end)) => Known::End(end),
            _ => Known::Rare,
        }
    }

    /// Caches the end of packets with these fields and this tracking state in a zone.
    pub(crate) fn learn(&mut self, set: &Compilation, words: &Words, state: State, zone: u16) {
        let at = usize::from(state.bits());
        self.by_state[at] = RARE;
        let First::Track(number) = self.first else { return };
        let Some(table) = set.table(number) else { return };
        let mut tracked = *words;
        key::set_tracked(&mut tracked, state, zone, 0, 0);
        let (rule, mut needed) = table.classifier.find_needed(&tracked);
        let of_connections = [key::CT_MARK, key::CT_LABEL_LOW, key::CT_LABEL_HIGH];
        let end = rule.and_then(|rule| End::of(table.rule(rule)?, Some(zone)));
        // Marks, labels and tuples differ from connection to connection.
        let differs = of_connections.iter().any(|p| p.get(&needed) != 0)
            || set.originals && key::may_ask_original(&needed);
        let Some(end) = end.filter(|_| !differs) else { return };
        let same = |e: &End| (e.slot, e.verdict, e.commit) == (end.slot, end.verdict, end.commit);
        let ends = &mut self.ends[..self.used];
        let number = match ends.iter().position(|e| e.as_ref().is_some_and(same)) {
            Some(number) => number,
            None if self.used < ENDS => {
                self.ends[self.used] = Some(end);
                self.used += 1;
                self.used - 1
            }
            None => return,
        };
        self.by_state[at] = number as u8 + 1;
        // The state selects the end, and a megaflow has one zone.
        key::CT_STATE.set(&mut needed, 0);
        key::CT_ZONE.set(&mut needed, 0);
        for (mask, needed) in self.mask.iter_mut().zip(needed) {
            *mask |= needed;
        }
        self.value = masked(words, &self.mask);
    }

    /// Adds the counts to the rules' counters. Returns the number of look-ups saved.
    fn settle(&mut self, tally: &Tally) -> u64 {
        let first = self.count.settle(tally, self.slot);
        let ends = self.ends[..self.used].iter_mut().flatten();
        first + ends.map(|end| end.count.settle(tally, end.slot)).sum::<u64>()
    }
}

impl End {
    /// Counts a packet.
    #[inline]
    pub(crate) fn count(&mut self, bytes: u64) {
        self.count.add(bytes);
    }
}

/// Number of cached megaflows.
const MEGAFLOWS: usize = 16;
/// Number of frames that bypass the cache after a frame with many misses.
const BYPASS_FRAMES: u32 = 64;

/// The megaflow cache of a worker.
#[derive(Debug)]
pub(crate) struct MegaflowCache {
    all: Box<[Megaflow; MEGAFLOWS]>,
    /// Index of the entry that is replaced next.
    next: usize,
    /// Frames left to bypass the cache, and megaflows added for the current frame.
    bypass: u32,
    learned: usize,
    /// Number of rule look-ups that the cache saved.
    pub(crate) saved: u64,
}

impl Default for MegaflowCache {
    fn default() -> Self {
        let all = Box::new(std::array::from_fn(|_| Megaflow::default()));
        MegaflowCache { all, next: 0, bypass: 0, learned: 0, saved: 0 }
    }
}

impl MegaflowCache {
    /// Begins a frame. Returns whether to try the cache: where packets have little in common,
    /// megaflows are replaced all the time and cost more than they save.
    #[inline]
    pub(crate) fn begin(&mut self) -> bool {
        if self.learned > MEGAFLOWS / 2 {
            self.bypass = BYPASS_FRAMES;
        }
        self.learned = 0;
        self.bypass = self.bypass.saturating_sub(1);
        self.bypass == 0
    }

    /// Returns whether enough megaflows were added for the current frame.
    #[inline]
    fn is_exhausted(&self) -> bool {
        self.learned > MEGAFLOWS / 2
    }

    #[inline]
    pub(crate) fn get(&mut self, at: usize) -> &mut Megaflow {
        &mut self.all[at % MEGAFLOWS]
    }

    /// Adds the counts of a megaflow to the rules' counters.
    #[inline]
    pub(crate) fn settle(&mut self, at: usize, tally: &Tally) {
        self.saved += self.all[at % MEGAFLOWS].settle(tally);
    }

    /// The megaflow of packets with these fields, added if it is missing; `None` if too many were
    /// added for the current frame.
    pub(crate) fn find(&mut self, set: &Compilation, words: &Words) -> Option<usize> {
        let matches = |megaflow: &Megaflow| {
            megaflow.generation == set.generation && megaflow.matches(words, set.wide)
        };
        if let Some(at) = self.all.iter().position(matches) {
            return Some(at);
        }
        if self.is_exhausted() {
            return None;
        }
        self.learned += 1;
        let at = self.next % MEGAFLOWS;
        self.next = at + 1;
        self.all[at] = Megaflow::new(set, words);
        Some(at)
    }
}

impl Megaflow {
    fn new(set: &Compilation, words: &Words) -> Megaflow {
        let mut megaflow = Megaflow { generation: set.generation, ..Megaflow::default() };
        let Some(table) = set.table(0) else { return megaflow };
        let (rule, needed) = table.classifier.find_needed(words);
        (megaflow.mask, megaflow.value) = (needed, masked(words, &needed));
        let Some(rule) = rule.and_then(|rule| table.rule(rule)) else { return megaflow };
        megaflow.slot = rule.slot;
        if let [Step::Ct(ct)] = &rule.steps[..] {
            let plain = !ct.commit && ct.nat.is_none() && ct.zone == set.zone;
            if let (true, Some(table)) = (plain, ct.table) {
                megaflow.first = First::Track(table);
            }
        } else if let Some(end) = End::of(rule, None) {
            (megaflow.first, megaflow.used, megaflow.ends[0]) = (First::End, 1, Some(end));
        }
        megaflow
    }
}
