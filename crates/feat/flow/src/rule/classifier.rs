//! Looks up the rule of a packet by tuple space search. Rules with the same mask form a hash table;
//! the tables are searched in order of their highest priority, until none of the rest can have a
//! better rule. Mask words that several tables share are looked up first, which rules out most
//! tables.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use thalweg_tables::hash::{mix64, random_seed};

use super::key::{WORDS, Words};
use super::matching::Match;

/// The compiled rules of a table. Rules are numbers of the caller's choice.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    groups: Vec<Group>,
    /// All bits that any rule matches.
    looked_at: Vec<Part>,
    seeds: Words,
}

/// A word of a packet's fields, and the mask of its significant bits.
type Part = (usize, u64);

/// Maximum number of spaces in a group, in order of their highest priority.
const GROUP: usize = u64::BITS as usize;

/// Spaces that are searched together.
#[derive(Clone, Debug)]
struct Group {
    spaces: Vec<Space>,
    stages: Vec<Stage>,
}

/// A mask word that several spaces share, to find which of these have a rule with the packet's
/// value. It rules out most spaces for most packets.
#[derive(Clone, Debug)]
struct Stage {
    word: usize,
    mask: u64,
    /// Spaces with this mask, one bit each.
    about: u64,
    /// Spaces that have a rule with the value, one bit each, by value.
    with: HashMap<u64, u64, BuildHasherDefault<Hashed>>,
    /// The values in ascending order.
    sorted: Vec<u64>,
}

/// Minimum number of spaces for a stage to pay off.
const WORTH: u32 = 3;
/// Maximum number of stages of a group: those with the most values, which discriminate best.
const STAGES: usize = 4;

/// The rules with one mask.
#[derive(Clone, Debug)]
struct Space {
    mask: Words,
    parts: Vec<Part>,
    highest: u16,
    /// By hash of the masked fields: fields, priority, rule.
    rules: HashMap<u64, Vec<(Words, u16, u32)>, BuildHasherDefault<Hashed>>,
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
    /// Compiles rules with their priorities and numbers. Of two rules with the same match and
    /// priority, the first one applies.
    pub fn new<'a>(rules: impl IntoIterator<Item = (&'a Match, u16, u32)>) -> Classifier {
        let seeds = std::array::from_fn(|_| random_seed());
        let mut all = Classifier { seeds, ..Classifier::default() };
        let (mut spaces, mut looked_at): (Vec<Space>, Words) = Default::default();
        let mut by_mask: HashMap<Words, usize> = HashMap::new();
        for (matches, priority, number) in rules {
            let mask = matches.mask;
            let at = *by_mask.entry(mask).or_insert_with(|| {
                let (parts, rules) = (parts(&mask), HashMap::default());
                spaces.push(Space { mask, parts, highest: 0, rules });
                spaces.len() - 1
            });
            let space = &mut spaces[at];
            space.highest = space.highest.max(priority);
            let key = hash(&all.seeds, &matches.value, &space.parts);
            let same = space.rules.entry(key).or_default();
            same.push((matches.value, priority, number));
            for (sum, word) in looked_at.iter_mut().zip(mask) {
                *sum |= word;
            }
        }
        for space in &mut spaces {
            // The sort is stable: the first of equals stays first.
            let sort = |same: &mut Vec<(Words, u16, u32)>| same.sort_by_key(|x| u16::MAX - x.1);
            space.rules.values_mut().for_each(sort);
        }
        spaces.sort_by_key(|space| u16::MAX - space.highest);
        while !spaces.is_empty() {
            let rest = spaces.split_off(spaces.len().min(GROUP));
            let stages = stages(&spaces, &all.seeds);
            all.groups.push(Group { spaces: std::mem::replace(&mut spaces, rest), stages });
        }
        all.looked_at = parts(&looked_at);
        all
    }

    /// The matching rule with the highest priority; of several, any.
    pub fn find(&self, words: &Words) -> Option<u32> {
        self.search(words, |_, _, _| {})
    }

    /// Same as [`find`](Self::find), with the bits of the packet's fields that the result depends
    /// on: all packets with these bits have the same result.
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
                    return best.map(|(_, number)| number);
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

    /// Number of hash tables.
    pub fn spaces(&self) -> usize {
        self.groups.iter().map(|group| group.spaces.len()).sum()
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
        let about = spaces.iter().enumerate().filter(|(i, _)| stage.about >> i & 1 == 1);
        for (i, space) in about {
            for (value, ..) in space.rules.values().flatten() {
                let value = value[stage.word];
                stage.sorted.push(value);
                let value = number(value, stage.word, seeds);
                *stage.with.entry(value).or_default() |= 1 << i;
            }
        }
        stage.sorted.sort_unstable();
        stage.sorted.dedup();
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
        let at = self.sorted.partition_point(|other| *other < value);
        let neighbours = &self.sorted[at.saturating_sub(1)..self.sorted.len().min(at + 1)];
        let alike = neighbours.iter().map(|other| (other ^ value).leading_zeros()).max();
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

/// What most look-ups compare is together: few rules look at many words.
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
    /// Same as [`Classifier::find`]. `rules` is a non-zero number unique to the classifier.
    /// Consecutive packets often have the same result in the same `turn`.
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

        /// No fewer bits distinguish the word from every value, and these do.
        #[test]
        fn few_bits_distinguish_a_value(
            values in prop::collection::btree_set(0u64..4096, 1..40), word in 0u64..4096, low: bool,
        ) {
            let (mask, at) = if low { (0xfff, 0) } else { (0xfff << 52, 52) };
            let sorted: Vec<u64> = values.iter().map(|v| v << at).collect();
            let stage = Stage { word: 0, mask, about: 1, with: HashMap::default(), sorted };
            prop_assume!(!values.contains(&word));
            let mask_of = stage.discriminator(word << at);
            prop_assert!(values.iter().all(|v| (v ^ word) << at & mask_of != 0));
            prop_assert!(mask_of & !mask == 0 && mask_of != 0);
            let fewer = mask_of & (mask_of - 1);
            prop_assert!(values.iter().any(|v| (v ^ word) << at & fewer == 0));
        }
    }
}
