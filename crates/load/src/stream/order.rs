//! Arrivals of a stream's packets: once, twice, out of order, or not at all.

use std::ops::Range;

/// Packets by which one may be late and still be distinguished from a repeated one, without being
/// named lost first.
const SPAN: u64 = 1 << 15;
/// Most ranges of lost packets that are kept.
const RANGES: usize = 4096;

/// Way in which a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// First time, and behind all others.
    InOrder,
    /// First time, after packets with greater numbers (RFC 4737 §3).
    Reordered,
    /// Repetition.
    Repeated,
    /// Arrival too late to tell if it is the first time.
    Ancient,
}

/// The packets of a stream.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The next number expected: one above the greatest that arrived.
    pub(super) next: u64,
    /// Arrivals of the last `SPAN` numbers before `next` by number modulo `SPAN`.
    words: Box<[u64]>,
    /// Numbers before those that have not arrived: ranges, in order.
    missing: Vec<Range<u64>>,
    /// True if there were more ranges than are kept.
    more: bool,
}

impl Default for Seen {
    fn default() -> Seen {
        // Numbers before 0 are not missing.
        Seen {
            next: 0,
            words: vec![u64::MAX; (SPAN / 64) as usize].into(),
            missing: Vec::new(),
            more: false,
        }
    }
}

impl Seen {
    /// Completes a number of which only the lower bits are known.
    #[inline]
    pub(super) fn full(&self, number: u32, bits: u32) -> Option<u64> {
        // A long gap is more frequent than a long delay.
        let late = 1u64 << (bits - 4);
        let ahead = u64::from(number).wrapping_sub(self.next).wrapping_add(late);
        (self.next + (ahead & ((1 << bits) - 1))).checked_sub(late)
    }

    #[inline]
    fn word(&mut self, number: u64) -> Option<&mut u64> {
        self.words.get_mut((number % SPAN / 64) as usize)
    }

    /// Takes in an arrival.
    #[inline]
    pub(super) fn arrived(&mut self, number: u64) -> Arrival {
        if number == self.next {
            self.advance();
            return Arrival::InOrder;
        }
        self.out_of_turn(number)
    }

    /// The next number arrives.
    #[inline]
    fn advance(&mut self) {
        let number = self.next;
        if number.is_multiple_of(64) {
            self.retire(number);
        }
        if let Some(word) = self.word(number) {
            *word |= 1 << (number % 64);
        }
        self.next += 1;
    }

    /// Notes what is missing of the word that gives way to that of a number, and clears it.
    #[inline]
    fn retire(&mut self, number: u64) {
        let old = self.word(number).map_or(u64::MAX, std::mem::take);
        if old != u64::MAX && number >= SPAN {
            let first = number - SPAN;
            (0..64).filter(|bit| old >> bit & 1 == 0).for_each(|bit| {
                self.lose(first + bit..first + bit + 1);
            });
        }
    }

    fn lose(&mut self, range: Range<u64>) {
        let kept = self.missing.len();
        match self.missing.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ if kept < RANGES => self.missing.push(range),
            _ => self.more = true,
        }
    }

    #[cold]
    fn out_of_turn(&mut self, number: u64) -> Arrival {
        if number > self.next {
            self.skip_to(number);
            self.advance();
            return Arrival::InOrder;
        }
        // All numbers of the word that `next` is in share their place with older ones.
        let oldest = self.next.next_multiple_of(64).saturating_sub(SPAN);
        if number >= oldest {
            let bit = 1 << (number % 64);
            let Some(word) = self.word(number) else { return Arrival::Ancient };
            let again = *word & bit != 0;
            *word |= bit;
            return if again { Arrival::Repeated } else { Arrival::Reordered };
        }
        match self.find(number) {
            true => Arrival::Reordered,
            false if self.more => Arrival::Ancient,
            false => Arrival::Repeated,
        }
    }

    /// Takes a number off the missing ones; false if it is none.
    fn find(&mut self, number: u64) -> bool {
        let at = self.missing.partition_point(|range| range.end <= number);
        let Some(range) = self.missing.get_mut(at).filter(|range| range.start <= number) else {
            return false;
        };
        match (number == range.start, number + 1 == range.end) {
            (true, true) => {
                self.missing.remove(at);
            }
            (true, false) => range.start += 1,
            (false, true) => range.end -= 1,
            (false, false) => {
                let behind = number + 1..range.end;
                range.end = number;
                self.missing.insert(at + 1, behind);
            }
        }
        true
    }

    /// Numbers up to this one have not arrived (yet).
    fn skip_to(&mut self, number: u64) {
        if number - self.next > 4 * SPAN {
            // Note what is missing of the numbers at hand, and all between them and the last
            // `SPAN`, which are missing so far.
            let last = self.next.next_multiple_of(64);
            (0..SPAN / 64).for_each(|place| self.retire(last + place * 64));
            self.next = number / 64 * 64;
            self.lose(last..self.next - SPAN);
            self.words.fill(0);
        }
        while self.next < number {
            let at = self.next;
            if at.is_multiple_of(64) {
                self.retire(at);
            }
            self.next = (at / 64 * 64 + 64).min(number);
        }
    }

    /// Returns the ranges of numbers below `sent` that have not arrived, in order, and whether that
    /// is all of them.
    pub(super) fn missing(&self, sent: u64) -> (Vec<Range<u64>>, bool) {
        let mut all = Seen { words: Box::default(), ..self.clone() };
        let oldest = self.next.next_multiple_of(64).saturating_sub(SPAN);
        for number in oldest..self.next {
            let word = self.words.get((number % SPAN / 64) as usize).copied().unwrap_or(u64::MAX);
            if word >> (number % 64) & 1 == 0 {
                all.lose(number..number + 1);
            }
        }
        if sent > self.next {
            all.lose(self.next..sent);
        }
        (all.missing, !all.more)
    }
}
