//! Finding the rule of a packet: tuple space search. Rules with the same mask are one hash table; the
//! tables are searched in order of their highest priority, until none can have a better rule.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use thalweg_tables::hash::{mix64, random_seed};

use super::key::{WORDS, Words};
use super::matching::Match;

/// A table of rules, compiled. Rules are numbers of the caller's.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    spaces: Vec<Space>,
    /// All bits that any rule looks at.
    looked_at: Words,
    used: Vec<usize>,
    seed: u64,
}

/// Rules of one mask.
#[derive(Clone, Debug)]
struct Space {
    mask: Words,
    used: Vec<usize>,
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
fn used(mask: &Words) -> Vec<usize> {
    (0..WORDS).filter(|i| mask[*i] != 0).collect()
}

/// The hash of those words of a packet's fields.
#[inline]
fn hash(seed: u64, words: &Words, mask: &Words, used: &[usize]) -> u64 {
    used.iter().fold(seed, |sum, &i| {
        let product = u128::from((words[i] & mask[i]) ^ sum) * 0x9e37_79b9_7f4a_7c15;
        product as u64 ^ (product >> 64) as u64
    })
}

fn masked(words: &Words, mask: &Words) -> Words {
    std::array::from_fn(|i| words[i] & mask[i])
}

impl Classifier {
    /// Rules, each with its priority and number; of two for the same packets with the same priority,
    /// the first one holds.
    pub fn new<'a>(rules: impl IntoIterator<Item = (&'a Match, u16, u32)>) -> Classifier {
        let mut all = Classifier { seed: random_seed(), ..Classifier::default() };
        let mut by_mask: HashMap<Words, usize> = HashMap::new();
        for (matches, priority, number) in rules {
            let mask = matches.mask;
            let at = *by_mask.entry(mask).or_insert_with(|| {
                let (used, rules) = (used(&mask), HashMap::default());
                all.spaces.push(Space { mask, used, highest: 0, rules });
                all.spaces.len() - 1
            });
            let space = &mut all.spaces[at];
            space.highest = space.highest.max(priority);
            let key = hash(all.seed, &matches.value, &mask, &space.used);
            let same = space.rules.entry(key).or_default();
            same.push((matches.value, priority, number));
            for (sum, word) in all.looked_at.iter_mut().zip(mask) {
                *sum |= word;
            }
        }
        for space in &mut all.spaces {
            // Stable: the first of equals stays first.
            let sort = |same: &mut Vec<(Words, u16, u32)>| same.sort_by_key(|x| u16::MAX - x.1);
            space.rules.values_mut().for_each(sort);
        }
        all.spaces.sort_by_key(|space| u16::MAX - space.highest);
        all.used = used(&all.looked_at);
        all
    }

    /// The rule of the highest priority that takes a packet; of several, any.
    pub fn find(&self, words: &Words) -> Option<u32> {
        let mut best: Option<(u16, u32)> = None;
        for space in &self.spaces {
            if best.is_some_and(|(priority, _)| priority >= space.highest) {
                break;
            }
            let key = hash(self.seed, words, &space.mask, &space.used);
            let Some(same) = space.rules.get(&key) else { continue };
            let takes = |value: &Words| masked(words, &space.mask) == *value;
            let found = same.iter().find(|(value, ..)| takes(value));
            if let Some((_, priority, number)) = found
                && best.is_none_or(|(best, _)| *priority > best)
            {
                best = Some((*priority, *number));
            }
        }
        best.map(|(_, number)| number)
    }

    /// The bits of a packet's fields that any rule looks at.
    #[inline]
    pub fn looked_at(&self, words: &Words) -> Words {
        masked(words, &self.looked_at)
    }

    /// Whether these are the bits of a packet's fields that any rule looks at.
    #[inline]
    fn looks_same(&self, words: &Words, looked_at: &Words) -> bool {
        let differs =
            |i: usize| words[i % WORDS] & self.looked_at[i % WORDS] ^ looked_at[i % WORDS];
        self.used.iter().fold(0, |sum, i| sum | differs(*i)) == 0
    }

    /// A hash of these bits.
    #[inline]
    pub fn hash(&self, words: &Words) -> u64 {
        hash(self.seed, words, &self.looked_at, &self.used)
    }

    /// Hash tables that a search may have to look into.
    pub fn spaces(&self) -> usize {
        self.spaces.len()
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
        prop::collection::vec(rule, 0..30)
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
                }
            }
        }
    }
}
