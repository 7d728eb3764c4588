//! Looks up the rule of a packet by tuple space search. Rules with the same mask form a hash table;
//! the tables are searched in order of their highest priority, until none of the rest can have a
//! better rule. Mask words that several tables share are looked up first, which rules out most
//! tables.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use thalweg_tables::CowMap;
use thalweg_tables::hash::{FastHash, mix64, random_seed};

use super::key::{WORDS, Words};
use super::matching::Match;

/// The compiled rules of a table. Rules are numbers of the caller's choice. A copy shares them with
/// the original: one rule more takes about the same time however many there are.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    groups: Vec<Arc<Group>>,
    /// Place of the space of a mask: its group, and number there.
    places: CowMap<Words, (u32, u32), FastHash>,
    /// All bits that any rule matches.
    looked_at: Vec<Part>,
    seeds: Words,
    /// True if spaces are in descending order of their highest priority.
    is_sorted: bool,
    /// Number of rules, and how many there were when all of them were compiled together.
    len: usize,
    compiled: usize,
}

/// A word of a packet's fields, and the mask of its significant bits.
type Part = (usize, u64);

/// Rules that are added or removed before all are compiled together again, at least.
const SLACK: usize = 64;

/// Maximum number of spaces in a group.
const GROUP: usize = u64::BITS as usize;

/// Spaces that are searched together.
#[derive(Clone, Debug, Default)]
struct Group {
    spaces: Vec<Arc<Space>>,
    stages: Vec<Arc<Stage>>,
}

/// A mask word that several spaces share, to find which of these have a rule with the packet's
/// value. This rules out most spaces for most packets.
#[derive(Clone, Debug)]
struct Stage {
    word: usize,
    mask: u64,
    /// Spaces with this mask, one bit each. Later ones are not among them.
    about: u64,
    /// Spaces that have a rule with the value, or had one, one bit each, by value.
    with: CowMap<u64, u64, BuildHasherDefault<Hashed>>,
    /// The values in ascending order.
    sorted: Ascending,
}

/// Values in ascending order, in pieces that copies share.
#[derive(Clone, Debug, Default)]
struct Ascending(Vec<Arc<Vec<u64>>>);

/// Values of a piece.
const PIECE: usize = 512;

impl Ascending {
    /// The pieces of values in ascending order, each once.
    fn of(values: &[u64]) -> Ascending {
        Ascending(values.chunks(PIECE / 2).map(|piece| Arc::new(piece.to_vec())).collect())
    }

    fn insert(&mut self, value: u64) {
        let after = self.0.partition_point(|piece| piece.first().is_some_and(|v| *v <= value));
        let at = after.saturating_sub(1);
        let Some(piece) = self.0.get_mut(at) else {
            return self.0.push(Arc::new(vec![value]));
        };
        let Err(place) = piece.binary_search(&value) else { return };
        let piece = Arc::make_mut(piece);
        piece.insert(place, value);
        if piece.len() > PIECE {
            let rest = piece.split_off(PIECE / 2);
            self.0.insert(at + 1, Arc::new(rest));
        }
    }

    /// The greatest value below one, and the least that is not below it.
    fn neighbours(&self, value: u64) -> impl Iterator<Item = u64> {
        let after = self.0.partition_point(|piece| piece.first().is_some_and(|v| *v < value));
        let (mut below, mut above) = (None, self.0.get(after).and_then(|p| p.first()));
        if let Some(piece) = self.0.get(after.wrapping_sub(1)) {
            let at = piece.partition_point(|other| *other < value);
            below = piece.get(at.wrapping_sub(1));
            above = piece.get(at).or(above);
        }
        [below, above].into_iter().flatten().copied()
    }
}

/// Minimum number of spaces for a stage to pay off.
const WORTH: u32 = 3;
/// Maximum number of stages of a group: those with the most values, which discriminate best.
const STAGES: usize = 4;

/// Rules whose masked fields have one hash: fields, priority, rule, the best first.
type SameHash = Arc<[(Words, u16, u32)]>;

/// The rules with one mask.
#[derive(Clone, Debug)]
struct Space {
    mask: Words,
    parts: Vec<Part>,
    highest: u16,
    /// Rules by hash of the masked fields.
    rules: CowMap<u64, SameHash, BuildHasherDefault<Hashed>>,
}

/// A hasher that passes a hash through.
#[derive(Clone, Copy, Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| mix64(sum << 8 | u64::from(*byte)));
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// The words in which a mask has bits.
fn parts(mask: &Words) -> Vec<Part> {
    mask.iter().copied().enumerate().filter(|(_, mask)| *mask != 0).collect()
}

/// The hash of some parts of a packet's fields; no part depends on another.
#[inline]
fn hash(seeds: &Words, words: &Words, parts: &[Part]) -> u64 {
    parts.iter().fold(0, |sum, (i, mask)| {
        let i = i % WORDS;
        let product = u128::from((words[i] & mask) ^ seeds[i]) * 0x9e37_79b9_7f4a_7c15;
        sum ^ (product as u64 ^ (product >> 64) as u64)
    })
}

fn masked(words: &Words, mask: &Words) -> Words {
    std::array::from_fn(|i| words[i] & mask[i])
}

impl Classifier {
    /// Compiles rules with their priorities and numbers. The first of two rules with the same match
    /// and priority applies.
    pub fn new<'a>(rules: impl IntoIterator<Item = (&'a Match, u16, u32)>) -> Classifier {
        let rules =
            rules.into_iter().map(|(m, priority, number)| (m.mask, m.value, priority, number));
        Classifier::of(rules)
    }

    /// The same by mask and value.
    fn of(rules: impl Iterator<Item = (Words, Words, u16, u32)>) -> Classifier {
        let seeds = std::array::from_fn(|_| random_seed());
        let mut all = Classifier { seeds, is_sorted: true, ..Classifier::default() };
        let (mut spaces, mut looked_at): (Vec<Space>, Words) = Default::default();
        let mut by_mask: HashMap<Words, usize> = HashMap::new();
        for (mask, value, priority, number) in rules {
            let at = *by_mask.entry(mask).or_insert_with(|| {
                spaces.push(Space::new(mask, priority));
                spaces.len() - 1
            });
            spaces[at].add(&seeds, value, priority, number);
            for (sum, word) in looked_at.iter_mut().zip(mask) {
                *sum |= word;
            }
            all.len += 1;
        }
        spaces.sort_by_key(|space| u16::MAX - space.highest);
        while !spaces.is_empty() {
            let rest = spaces.split_off(spaces.len().min(GROUP));
            let spaces = std::mem::replace(&mut spaces, rest);
            for (at, space) in (0..).zip(&spaces) {
                all.places.insert(space.mask, (all.groups.len() as u32, at));
            }
            let stages = stages(&spaces, &all.seeds).into_iter().map(Arc::new).collect();
            let spaces = spaces.into_iter().map(Arc::new).collect();
            all.groups.push(Arc::new(Group { spaces, stages }));
        }
        all.looked_at = parts(&looked_at);
        all.compiled = all.len;
        all
    }

    /// Adds a rule. The first of two rules with the same match and priority applies.
    pub fn add(&mut self, matches: &Match, priority: u16, number: u32) {
        let Match { mask, value, .. } = matches;
        let (group, at) = match self.places.get(mask) {
            Some(place) => *place,
            None => self.add_space(*mask, priority),
        };
        self.len += 1;
        let before = match (group, at) {
            (0, 0) => None,
            (_, 0) => self.groups[group as usize - 1].spaces.last(),
            _ => self.groups[group as usize].spaces.get(at as usize - 1),
        };
        self.is_sorted &= before.is_none_or(|before| before.highest >= priority);
        let group = Arc::make_mut(&mut self.groups[group as usize]);
        Arc::make_mut(&mut group.spaces[at as usize]).add(&self.seeds, *value, priority, number);
        for stage in group.stages.iter_mut().filter(|stage| stage.about >> at & 1 == 1) {
            let stage = Arc::make_mut(stage);
            let word = stage.word;
            stage.sorted.insert(value[word]);
            let key = self::number(value[word], word, &self.seeds);
            stage.with.change(key, |spaces| *spaces |= 1 << at);
        }
        if self.len > 2 * self.compiled + SLACK {
            self.compile_again();
        }
    }

    /// Removes a rule.
    pub fn remove(&mut self, matches: &Match, number: u32) {
        let Some((group, at)) = self.places.get(&matches.mask).copied() else { return };
        let group = Arc::make_mut(&mut self.groups[group as usize]);
        let space = Arc::make_mut(&mut group.spaces[at as usize]);
        // Stages may go on to name it: they only rule out.
        self.len -= usize::from(space.remove(&self.seeds, &matches.value, number));
        if 2 * self.len + SLACK < self.compiled {
            self.compile_again();
        }
    }

    /// Appends a space; returns its place.
    fn add_space(&mut self, mask: Words, priority: u16) -> (u32, u32) {
        if self.groups.last().is_none_or(|group| group.spaces.len() == GROUP) {
            self.groups.push(Arc::default());
        }
        let number = self.groups.len() - 1;
        let group = Arc::make_mut(&mut self.groups[number]);
        group.spaces.push(Arc::new(Space::new(mask, priority)));
        let place = (number as u32, group.spaces.len() as u32 - 1);
        self.places.insert(mask, place);
        let mut looked_at = mask;
        self.looked_at.iter().for_each(|(word, mask)| looked_at[*word] |= mask);
        self.looked_at = parts(&looked_at);
        place
    }

    /// Compiles all rules together, in the best order and with the stages that pay off.
    fn compile_again(&mut self) {
        let spaces = self.groups.iter().flat_map(|group| &group.spaces);
        let rules = spaces.flat_map(|space| {
            let rules = space.rules.iter().flat_map(|(_, same)| same.iter());
            rules.map(|(value, priority, number)| (space.mask, *value, *priority, *number))
        });
        *self = Classifier::of(rules);
    }

    /// The matching rule with the highest priority; of several, any.
    pub fn find(&self, words: &Words) -> Option<u32> {
        self.search(words, |_, _, _| {})
    }

    /// Does the same as [`find`](Self::find), with the bits of the packet's fields that the result
    /// depends on: all packets with these bits have the same result.
    pub fn find_needed(&self, words: &Words) -> (Option<u32>, Words) {
        let mut needed = [0; WORDS];
        let found = self.search(words, |word, mask, stage| {
            needed[word] |= match stage {
                Some(stage) => stage.discriminator(words[word]),
                None => mask,
            };
        });
        (found, needed)
    }

    /// Searches, and calls `looks_at` with each word and mask it examines, and with the stage if
    /// that has no such value.
    #[inline(always)]
    fn search(
        &self,
        words: &Words,
        mut looks_at: impl FnMut(usize, u64, Option<&Stage>),
    ) -> Option<u32> {
        let mut best: Option<(u16, u32)> = None;
        for group in &self.groups {
            let mut left = group.worth_a_search(words, &self.seeds, &mut looks_at);
            while left != 0 {
                let space = &group.spaces[left.trailing_zeros() as usize];
                left &= left - 1;
                if best.is_some_and(|(priority, _)| priority >= space.highest) {
                    if self.is_sorted {
                        return best.map(|(_, number)| number);
                    }
                    continue;
                }
                space.parts.iter().for_each(|(word, mask)| looks_at(*word, *mask, None));
                let key = hash(&self.seeds, words, &space.parts);
                let Some(same) = space.rules.get(&key) else { continue };
                let takes = |value: &Words| masked(words, &space.mask) == *value;
                let found = same.iter().find(|(value, ..)| takes(value));
                if let Some((_, priority, number)) = found
                    && best.is_none_or(|(best, _)| *priority > best)
                {
                    best = Some((*priority, *number));
                }
            }
        }
        best.map(|(_, number)| number)
    }

    /// The bits of a packet's fields that any rule matches, one word after the other.
    #[inline]
    fn looked_at(&self, words: &Words) -> Words {
        let mut all = [0; WORDS];
        for (to, (i, mask)) in all.iter_mut().zip(&self.looked_at) {
            *to = words[i % WORDS] & mask;
        }
        all
    }

    /// Returns whether a packet has these bits where any rule matches.
    #[inline]
    fn looks_same(&self, words: &Words, looked_at: &Words) -> bool {
        let all = self.looked_at.iter().zip(looked_at);
        all.fold(0, |sum, ((i, mask), was)| sum | words[i % WORDS] & mask ^ was) == 0
    }

    /// Hash of the bits that any rule matches.
    #[inline]
    fn hash(&self, words: &Words) -> u64 {
        hash(&self.seeds, words, &self.looked_at)
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of hash tables.
    pub fn spaces(&self) -> usize {
        self.groups.iter().map(|group| group.spaces.len()).sum()
    }
}

impl Space {
    fn new(mask: Words, highest: u16) -> Space {
        Space { mask, parts: parts(&mask), highest, rules: CowMap::default() }
    }

    /// Adds a rule behind others of the same priority.
    fn add(&mut self, seeds: &Words, value: Words, priority: u16, number: u32) {
        self.highest = self.highest.max(priority);
        let key = hash(seeds, &value, &self.parts);
        let mut same = self.rules.get(&key).map_or_else(Vec::new, |same| same.to_vec());
        let at = same.partition_point(|(_, other, _)| *other >= priority);
        same.insert(at, (value, priority, number));
        self.rules.insert(key, same.into());
    }

    /// Removes a rule; returns whether it was there.
    fn remove(&mut self, seeds: &Words, value: &Words, number: u32) -> bool {
        let key = hash(seeds, value, &self.parts);
        let Some(same) = self.rules.get(&key) else { return false };
        let left: Vec<_> = same.iter().filter(|(.., other)| *other != number).copied().collect();
        let was_there = left.len() < same.len();
        match left.is_empty() {
            true => drop(self.rules.remove(&key)),
            false => drop(self.rules.insert(key, left.into())),
        }
        was_there
    }
}

/// The hash of a value in a word.
#[inline]
fn number(value: u64, word: usize, seeds: &Words) -> u64 {
    mix64(value ^ seeds[word % WORDS])
}

/// The stages that pay off for some spaces.
fn stages(spaces: &[Space], seeds: &Words) -> Vec<Stage> {
    let mut all: Vec<Stage> = Vec::new();
    for word in 0..WORDS {
        let mut about: HashMap<u64, u64> = HashMap::new();
        for (i, space) in spaces.iter().enumerate() {
            *about.entry(space.mask[word]).or_default() |= 1 << i;
        }
        about.retain(|mask, about| *mask != 0 && about.count_ones() >= WORTH);
        let stage = |(mask, about)| {
            let (with, sorted) = Default::default();
            Stage { word, mask, about, with, sorted }
        };
        all.extend(about.into_iter().map(stage));
    }
    for stage in &mut all {
        let mut sorted = Vec::new();
        let about = spaces.iter().enumerate().filter(|(i, _)| stage.about >> i & 1 == 1);
        for (i, space) in about {
            for (value, ..) in space.rules.iter().flat_map(|(_, same)| same.iter()) {
                let value = value[stage.word];
                sorted.push(value);
                let value = number(value, stage.word, seeds);
                stage.with.change(value, |spaces| *spaces |= 1 << i);
            }
        }
        sorted.sort_unstable();
        sorted.dedup();
        stage.sorted = Ascending::of(&sorted);
    }
    all.sort_by_key(|stage| std::cmp::Reverse(stage.with.len()));
    all.truncate(STAGES);
    all
}

impl Stage {
    /// A mask of few bits that distinguish a word from all values of the stage, none of which it
    /// equals: the upper bits, down to where it differs from its neighbours.
    fn discriminator(&self, word: u64) -> u64 {
        let value = word & self.mask;
        let neighbours = self.sorted.neighbours(value);
        let alike = neighbours.map(|other| (other ^ value).leading_zeros()).max();
        let behind = alike.map_or(0, |alike| u64::MAX.checked_shr(alike + 1).unwrap_or(0));
        self.mask & !behind
    }
}

impl Group {
    /// Spaces that may have a rule for a packet, one bit each.
    #[inline(always)]
    fn worth_a_search(
        &self,
        words: &Words,
        seeds: &Words,
        looks_at: &mut impl FnMut(usize, u64, Option<&Stage>),
    ) -> u64 {
        let mut left = u64::MAX >> (GROUP - self.spaces.len());
        for stage in &self.stages {
            if left & stage.about != 0 {
                let word = stage.word % WORDS;
                let value = number(words[word] & stage.mask, stage.word, seeds);
                let with = stage.with.get(&value);
                looks_at(word, stage.mask, with.is_none().then_some(stage));
                left &= with.copied().unwrap_or(0) | !stage.about;
            }
        }
        left
    }
}

/// Recent results: packets that agree in all significant bits have the same rule.
#[derive(Debug)]
pub struct Cache {
    places: Box<[Remembered]>,
    /// Index of the last hit, by turn.
    last: [u16; LAST],
    /// Number of hits and misses.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// A remembered look-up. The fields that most look-ups compare are together: few rules look at many
/// words.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Remembered {
    /// The generation that the entry belongs to; 0 = unused.
    rules: u64,
    /// The rule plus one; 0 = no rule.
    rule: u32,
    words: Words,
}

const PLACES: usize = 4096;
/// Number of distinguished turns: look-ups of one packet.
const LAST: usize = 4;

impl Default for Cache {
    fn default() -> Self {
        let places = vec![Remembered::default(); PLACES].into();
        Cache { places, last: [0; LAST], hits: 0, misses: 0 }
    }
}

impl Cache {
    /// Does the same as [`Classifier::find`]. `rules` is a non-zero number unique to the
    /// classifier. Consecutive packets often have the same result in the same `turn`.
    #[inline]
    pub fn find(
        &mut self,
        classifier: &Classifier,
        rules: u64,
        words: &Words,
        turn: usize,
    ) -> Option<u32> {
        let turn = turn % LAST;
        let place = &self.places[usize::from(self.last[turn]) % PLACES];
        if place.rules == rules && classifier.looks_same(words, &place.words) {
            self.hits += 1;
            return place.rule.checked_sub(1);
        }
        self.search(classifier, rules, words, turn)
    }

    fn search(
        &mut self,
        classifier: &Classifier,
        rules: u64,
        words: &Words,
        turn: usize,
    ) -> Option<u32> {
        let at = (classifier.hash(words) >> 32) as usize % PLACES;
        self.last[turn] = at as u16;
        let place = &mut self.places[at];
        if place.rules == rules && classifier.looks_same(words, &place.words) {
            self.hits += 1;
        } else {
            self.misses += 1;
            let rule = classifier.find(words).map_or(0, |rule| rule + 1);
            *place = Remembered { words: classifier.looked_at(words), rules, rule };
        }
        place.rule.checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Words of which every second one has bits.
    fn spread(few: [u64; WORDS / 2]) -> Words {
        std::array::from_fn(|i| if i % 2 == 0 { few[i / 2] } else { 0 })
    }

    /// Rules that match few bits, so that they overlap often.
    fn rules() -> impl Strategy<Value = Vec<(Match, u16)>> {
        let word = || prop_oneof![3 => Just(0u64), 1 => 0u64..4];
        let words = || prop::array::uniform8(word()).prop_map(spread);
        let rule = (words(), words(), 0u16..5).prop_map(|(value, mask, priority)| {
            let value = masked(&value, &mask);
            (Match { value, mask, in_port: None }, priority)
        });
        prop::collection::vec(rule, 0..200)
    }

    proptest! {
        #[test]
        fn the_best_rule_is_found(
            sets in prop::collection::vec(rules(), 1..3),
            packets in prop::collection::vec(prop::array::uniform8(0u64..4).prop_map(spread), 1..50),
        ) {
            let mut cache = Cache::default();
            for (n, rules) in sets.iter().enumerate() {
                let numbered = rules.iter().zip(0u32..).map(|((m, p), n)| (m, *p, n));
                let classifier = Classifier::new(numbered);
                for words in packets.iter().chain(&packets) {
                    let naive = rules.iter().filter(|(m, _)| m.takes(words)).map(|r| r.1).max();
                    let found = classifier.find(words);
                    let priority = found.map(|n| rules[n as usize].1);
                    prop_assert_eq!(priority, naive);
                    if let Some(n) = found {
                        prop_assert!(rules[n as usize].0.takes(words));
                    }
                    let cached = cache.find(&classifier, n as u64 + 1, words, 0);
                    prop_assert_eq!(cached, found);
                    let (same, needed) = classifier.find_needed(words);
                    prop_assert_eq!(same, found);
                    for other in &packets {
                        let alike = std::array::from_fn(|i| {
                            words[i] & needed[i] | other[i] & !needed[i]
                        });
                        prop_assert_eq!(classifier.find(&alike), found);
                    }
                }
            }
        }

        /// A table whose rules come and go is one with the rules that are left.
        #[test]
        fn rules_come_and_go(
            rules in rules(), drawn in prop::collection::vec(any::<u16>(), 1..400),
            packets in prop::collection::vec(prop::array::uniform8(0u64..4).prop_map(spread), 1..20),
        ) {
            prop_assume!(!rules.is_empty());
            let first = rules.len() / 3;
            let numbered = rules[..first].iter().zip(0u32..).map(|((m, p), n)| (m, *p, n));
            let mut classifier = Classifier::new(numbered);
            let mut left: Vec<usize> = (0..first).collect();
            for drawn in drawn {
                let at = usize::from(drawn) % rules.len();
                match left.iter().position(|n| *n == at) {
                    Some(place) => {
                        left.remove(place);
                        classifier.remove(&rules[at].0, at as u32);
                    }
                    None => {
                        left.push(at);
                        classifier.add(&rules[at].0, rules[at].1, at as u32);
                    }
                }
            }
            prop_assert_eq!(classifier.len, left.len());
            for words in &packets {
                let takes = |n: &&usize| rules[**n].0.takes(words);
                let naive = left.iter().filter(takes).map(|n| rules[*n].1).max();
                let (found, needed) = classifier.find_needed(words);
                prop_assert_eq!(found.map(|n| rules[n as usize].1), naive);
                prop_assert!(found.is_none_or(|n| takes(&&(n as usize))));
                for other in &packets {
                    let alike = std::array::from_fn(|i| {
                        words[i] & needed[i] | other[i] & !needed[i]
                    });
                    prop_assert_eq!(classifier.find(&alike), found);
                }
            }
        }

        /// No fewer bits distinguish the word from every value, and these do.
        #[test]
        fn few_bits_distinguish_a_value(
            values in prop::collection::btree_set(0u64..4096, 1..40), word in 0u64..4096, low: bool,
        ) {
            let (mask, at) = if low { (0xfff, 0) } else { (0xfff << 52, 52) };
            let sorted: Vec<u64> = values.iter().map(|v| v << at).collect();
            let with = CowMap::default();
            let mut ascending = Ascending::default();
            sorted.iter().rev().for_each(|value| ascending.insert(*value));
            let stage = Stage { word: 0, mask, about: 1, with, sorted: ascending };
            prop_assume!(!values.contains(&word));
            let mask_of = stage.discriminator(word << at);
            prop_assert!(values.iter().all(|v| (v ^ word) << at & mask_of != 0));
            prop_assert!(mask_of & !mask == 0 && mask_of != 0);
            let fewer = mask_of & (mask_of - 1);
            prop_assert!(values.iter().any(|v| (v ^ word) << at & fewer == 0));
        }
    }
}
