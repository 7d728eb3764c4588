//! Ways that packets lately took, whole: from the first table through the tracker to the last step.
//!
//! A way is about some bits of packets' fields: all packets with these bits are looked up alike. Where rules
//! go on with what the tracker says, a way has an end for each `ct_state`. So most packets need one comparison
//! in place of two look-ups and the steps of two rules. What is rare has no way, and takes each step.

use thalweg_buffer::Rows;
use thalweg_conntrack::{Commit, State};
use thalweg_graph::Verdict;

use crate::nodes::flow_rules::BY_RULE;
use crate::rule::Ct;
use crate::rule::key::{self, WORDS, Words};
use crate::tables::{Compilation, Compiled, Step, Tally};

/// Packets and bytes that are not in a rule's account yet.
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

    /// Returns how many packets there were.
    #[inline]
    fn settle(&mut self, tally: &Tally, slot: u32) -> u64 {
        let Count { packets, bytes } = std::mem::take(self);
        if packets != 0 {
            tally.add_many(slot, packets, bytes);
        }
        packets
    }
}

/// The last rule of a way, done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// How the connection is committed before.
    pub(crate) commit: Option<Commit>,
    pub(crate) verdict: Verdict,
    slot: u32,
    count: Count,
}

impl End {
    /// What a rule does, if it sends packets to one place at most and does not change them. `zone` is the
    /// one in which the tracker has seen them.
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
            [] => Verdict::drop(BY_RULE),
            [Step::Normal] => Verdict::CONTINUE,
            [Step::Output(node)] => Verdict::node(*node),
            _ => return None,
        };
        Some(End { commit, verdict, slot: rule.slot, count: Count::default() })
    }
}

/// What packets of a way meet first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// Something that takes each step.
    Rare,
    /// The only end there is.
    End,
    /// The tracker, and then this table.
    Track(u8),
}

/// Ends of a way: what the tracker says is mostly one of four things.
const ENDS: usize = 6;
/// For a state of which packets take each step.
const RARE: u8 = u8::MAX;

/// See the module.
#[derive(Debug)]
pub(crate) struct Way {
    /// The number of the compilation that it is about; 0: nothing.
    generation: u64,
    mask: Words,
    value: Words,
    pub(crate) first: First,
    slot: u32,
    count: Count,
    /// By `ct_state`: the end and one more; 0: not known yet.
    by_state: [u8; 256],
    ends: [Option<End>; ENDS],
    used: usize,
}

impl Default for Way {
    fn default() -> Self {
        Way {
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

/// What is known of a state on a way.
pub(crate) enum Known<'a> {
    /// This is the end.
    End(&'a mut End),
    /// Such packets take each step.
    Rare,
    /// Nothing yet.
    Nothing,
}

#[inline(always)]
fn same(words: &Words, mask: &Words, value: &Words) -> bool {
    (0..WORDS).fold(0, |sum, i| sum | words[i] & mask[i] ^ value[i]) == 0
}

fn masked(words: &Words, mask: &Words) -> Words {
    std::array::from_fn(|i| words[i] & mask[i])
}

impl Way {
    /// Whether packets with these fields take it. Ways of other compilations have been forgotten.
    #[inline(always)]
    pub(crate) fn takes(&self, words: &Words) -> bool {
        same(words, &self.mask, &self.value)
    }

    /// Those of many packets that do not.
    #[inline(always)]
    pub(crate) fn others(&self, words: &[Words]) -> Rows {
        let (mask, value) = (self.mask, self.value);
        Rows::of(words.iter().map(|words| !same(words, &mask, &value)))
    }

    /// Counts a packet for the first rule, if there is another one.
    #[inline]
    pub(crate) fn count(&mut self, bytes: u64) {
        self.count.add(bytes);
    }

    /// The only end of packets that the tracker is not asked about.
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

    /// Finds the end of packets with these fields, of which the tracker says this in a zone.
    pub(crate) fn learn(&mut self, set: &Compilation, words: &Words, state: State, zone: u16) {
        let at = usize::from(state.bits());
        self.by_state[at] = RARE;
        let First::Track(number) = self.first else { return };
        let Some(table) = set.table(number) else { return };
        let mut tracked = *words;
        key::set_tracked(&mut tracked, state, zone, 0, 0);
        let (rule, mut needed) = table.classifier.find_needed(&tracked);
        let of_connections = [key::CT_MARK, key::CT_LABEL_LOW, key::CT_LABEL_HIGH];
        let end = rule.and_then(|rule| End::of(&table.rules[rule as usize], Some(zone)));
        // Marks and labels are each connection's own.
        let (Some(end), true) = (end, of_connections.iter().all(|p| p.get(&needed) == 0)) else {
            return;
        };
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
        // The state is looked up, and a way has one zone.
        key::CT_STATE.set(&mut needed, 0);
        key::CT_ZONE.set(&mut needed, 0);
        for (mask, needed) in self.mask.iter_mut().zip(needed) {
            *mask |= needed;
        }
        self.value = masked(words, &self.mask);
    }

    /// Puts what was counted into the rules' accounts, and returns how many look-ups it was.
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

/// Ways that are remembered.
const WAYS: usize = 16;
/// Frames that go without ways after one of which many packets had none.
const REST: u32 = 64;

/// The ways of a worker.
#[derive(Debug)]
pub(crate) struct Ways {
    all: Box<[Way; WAYS]>,
    /// The one that gives its place next.
    next: usize,
    /// Frames that go without, and ways that were learned for the frame in hand.
    rest: u32,
    learned: usize,
    /// Look-ups that ways took the place of.
    pub(crate) saved: u64,
}

impl Default for Ways {
    fn default() -> Self {
        let all = Box::new(std::array::from_fn(|_| Way::default()));
        Ways { all, next: 0, rest: 0, learned: 0, saved: 0 }
    }
}

impl Ways {
    /// Whether a frame is to be tried. Where packets have little in common, ways come and go, and cost
    /// more than they save.
    #[inline]
    pub(crate) fn begin(&mut self) -> bool {
        if self.learned > WAYS / 2 {
            self.rest = REST;
        }
        self.learned = 0;
        self.rest = self.rest.saturating_sub(1);
        self.rest == 0
    }

    /// Whether enough was learned for the frame in hand.
    #[inline]
    fn is_tired(&self) -> bool {
        self.learned > WAYS / 2
    }

    #[inline]
    pub(crate) fn get(&mut self, at: usize) -> &mut Way {
        &mut self.all[at % WAYS]
    }

    /// Puts what was counted on a way into the rules' accounts.
    #[inline]
    pub(crate) fn settle(&mut self, at: usize, tally: &Tally) {
        self.saved += self.all[at % WAYS].settle(tally);
    }

    /// The way of packets with these fields; one that is not known is found out. Nothing if that does not
    /// seem worth it.
    pub(crate) fn find(&mut self, set: &Compilation, words: &Words) -> Option<usize> {
        let takes = |way: &Way| way.generation == set.generation && way.takes(words);
        if let Some(at) = self.all.iter().position(takes) {
            return Some(at);
        }
        if self.is_tired() {
            return None;
        }
        self.learned += 1;
        let at = self.next % WAYS;
        self.next = at + 1;
        self.all[at] = Way::new(set, words);
        Some(at)
    }
}

impl Way {
    fn new(set: &Compilation, words: &Words) -> Way {
        let mut way = Way { generation: set.generation, ..Way::default() };
        let Some(table) = set.table(0) else { return way };
        let (rule, needed) = table.classifier.find_needed(words);
        (way.mask, way.value) = (needed, masked(words, &needed));
        let Some(rule) = rule.map(|rule| &table.rules[rule as usize]) else { return way };
        way.slot = rule.slot;
        if let [Step::Ct(ct)] = &rule.steps[..] {
            let plain = !ct.commit && ct.nat.is_none() && ct.zone == set.zone;
            if let (true, Some(table)) = (plain, ct.table) {
                way.first = First::Track(table);
            }
        } else if let Some(end) = End::of(rule, None) {
            (way.first, way.used, way.ends[0]) = (First::End, 1, Some(end));
        }
        way
    }
}
