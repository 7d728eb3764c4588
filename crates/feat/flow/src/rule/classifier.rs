//! Finding the rule of a packet: tuple space search. Rules with the same mask are one hash table; the
//! tables are searched in order of their highest priority, until none can have a better rule. Words that
//! the masks of several tables have in common are looked up before, to leave out most tables.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use thalweg_tables::hash::{mix64, random_seed};

use super::key::{WORDS, Words};
use super::matching::Match;

/// A table of rules, compiled. Rules are numbers of the caller's.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    groups: Vec<Group>,
    /// All bits that any rule looks at.
    looked_at: Vec<Part>,
    seeds: Words,
}

/// A word of a packet's fields, and which bits of it matter.
type Part = (usize, u64);

/// So many spaces at most, in order of their highest priority.
const GROUP: usize = u64::BITS as usize;

/// Spaces that are searched together.
#[derive(Clone, Debug)]
struct Group {
    spaces: Vec<Space>,
    stages: Vec<Stage>,
}

/// A word of masks that some spaces have in common: which of these have a rule with the value that a packet
/// has there. Most packets need not be looked for in most spaces.
#[derive(Clone, Debug)]
struct Stage {
    word: usize,
    mask: u64,
    /// A bit for each space that has this mask.
    about: u64,
    /// By value: a bit for each of those that has a rule with it.
    with: HashMap<u64, u64, BuildHasherDefault<Hashed>>,
    /// These values in order.
    sorted: Vec<u64>,
}

/// Spaces that a stage is worth it for.
const WORTH: u32 = 3;
/// Stages of a group: those with the most values, which tell the most packets apart.
const STAGES: usize = 4;

/// Rules of one mask.
#[derive(Clone, Debug)]
struct Space {
    mask: Words,
    parts: Vec<Part>,
    highest: u16,
    /// By the masked fields, hashed: fields, priority, rule.
    rules: HashMap<u64, Vec<(Words, u16, u32)>, BuildHasherDefault<Hashed>>,
}

/// Takes a hash for itself.
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

/// Words in which a mask has bits.
fn parts(mask: &Words) -> Vec<Part> {
    mask.iter().copied().enumerate().filter(|(_, mask)| *mask != 0).collect()
}

/// The hash of those parts of a packet's fields, none of which waits for another.
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
    /// Rules, each with its priority and number; of two for the same packets with the same priority,
    /// the first one holds.
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
            // Stable: the first of equals stays first.
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

    /// The rule of the highest priority that takes a packet; of several, any.
    pub fn find(&self, words: &Words) -> Option<u32> {
        self.search(words, |_, _, _| {})
    }

    /// What [`find`](Self::find) says, and the bits of the packet's fields that it follows from: it says
    /// the same of all packets that have these bits.
    pub fn find_needed(&self, words: &Words) -> (Option<u32>, Words) {
        let mut needed = [0; WORDS];
        let found = self.search(words, |word, mask, stage| {
            needed[word] |= match stage {
                Some(stage) => stage.tells(words[word]),
                None => mask,
            };
        });
        (found, needed)
    }

    /// Tells `looks_at` which words it looks at under which masks, and if for a value that a stage has not,
    /// for which stage.
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

    /// The bits of a packet's fields that any rule looks at, word behind word.
    #[inline]
    fn looked_at(&self, words: &Words) -> Words {
        let mut all = [0; WORDS];
        for (to, (i, mask)) in all.iter_mut().zip(&self.looked_at) {
            *to = words[i % WORDS] & mask;
        }
        all
    }

    /// Whether these are the bits of a packet's fields that any rule looks at.
    #[inline]
    fn looks_same(&self, words: &Words, looked_at: &Words) -> bool {
        let all = self.looked_at.iter().zip(looked_at);
        all.fold(0, |sum, ((i, mask), was)| sum | words[i % WORDS] & mask ^ was) == 0
    }

    /// A hash of these bits.
    #[inline]
    fn hash(&self, words: &Words) -> u64 {
        hash(&self.seeds, words, &self.looked_at)
    }

    /// Hash tables that a search may have to look into.
    pub fn spaces(&self) -> usize {
        self.groups.iter().map(|group| group.spaces.len()).sum()
    }
}

/// A number for a value in a word, another one for each value.
#[inline]
fn number(value: u64, word: usize, seeds: &Words) -> u64 {
    mix64(value ^ seeds[word % WORDS])
}

/// The stages that some spaces are worth.
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
    /// As few bits of a word as tell it from all values that there are, none of which it has: the upper
    /// ones, up to where it differs from the last of its neighbours.
    fn tells(&self, word: u64) -> u64 {
        let value = word & self.mask;
        let at = self.sorted.partition_point(|other| *other < value);
        let neighbours = &self.sorted[at.saturating_sub(1)..self.sorted.len().min(at + 1)];
        let alike = neighbours.iter().map(|other| (other ^ value).leading_zeros()).max();
        let behind = alike.map_or(0, |alike| u64::MAX.checked_shr(alike + 1).unwrap_or(0));
        self.mask & !behind
    }
}

impl Group {
    /// A bit for each space that may have a rule for a packet.
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

/// What was found lately: packets of which all bits that matter are the same have the same rule.
#[derive(Debug)]
pub struct Cache {
    places: Box<[Remembered]>,
    /// Where the last one was found, by turn.
    last: [u16; LAST],
    /// Searches that it saved, and that it did not.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Remembered {
    words: Words,
    /// The rules that it is about; 0: nothing.
    rules: u64,
    /// The rule and one more; 0: none takes it.
    rule: u32,
}

const PLACES: usize = 4096;
/// Turns that are told apart: lookups of one packet.
const LAST: usize = 4;

impl Default for Cache {
    fn default() -> Self {
        let places = vec![Remembered::default(); PLACES].into();
        Cache { places, last: [0; LAST], hits: 0, misses: 0 }
    }
}

impl Cache {
    /// What [`Classifier::find`] says. `rules` is a number for the classifier that no other one ever
    /// has, and not 0. Packets are often like the one before them that was asked about for the same
    /// `turn`.
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

    /// Rules that look at few bits, so that they often overlap.
    fn rules() -> impl Strategy<Value = Vec<(Match, u16)>> {
        let word = || prop_oneof![3 => Just(0u64), 1 => 0u64..4];
        let words = || prop::array::uniform8(word());
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
            packets in prop::collection::vec(prop::array::uniform8(0u64..4), 1..50),
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

        /// No value is told from the word by fewer bits, and all are by these.
        #[test]
        fn bits_tell_a_value_from_others(
            values in prop::collection::btree_set(0u64..4096, 1..40), word in 0u64..4096, low: bool,
        ) {
            let (mask, at) = if low { (0xfff, 0) } else { (0xfff << 52, 52) };
            let sorted: Vec<u64> = values.iter().map(|v| v << at).collect();
            let stage = Stage { word: 0, mask, about: 1, with: HashMap::default(), sorted };
            prop_assume!(!values.contains(&word));
            let tells = stage.tells(word << at);
            prop_assert!(values.iter().all(|v| (v ^ word) << at & tells != 0));
            prop_assert!(tells & !mask == 0 && tells != 0);
            let fewer = tells & (tells - 1);
            prop_assert!(values.iter().any(|v| (v ^ word) << at & fewer == 0));
        }
    }
}
