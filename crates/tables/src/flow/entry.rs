//! The memory of a flow.

use super::Found;
use super::timer::Millis;
use crate::paged::AllZeroValid;
use crate::prefetch;

/// Neighbours in a list, as flow + 1; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Links {
    pub(super) next: u32,
    pub(super) previous: u32,
}

/// What a flow is, apart from its value.
pub(super) const FREE: u8 = 0;
/// It has one key at least.
pub(super) const LIVE: u8 = 1;
/// It has a second key.
pub(super) const TWO_KEYS: u8 = 2;
/// It may be given up for another.
pub(super) const YOUNG: u8 = 4;

/// A flow. What a packet needs that was found by the first key comes first, then what one needs that is to have the
/// other key, or is found by that. Flows of less than 128 bytes do not begin with cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Entry<const W: usize, V, R> {
    pub(super) first: [u64; W],
    pub(super) end: Millis,
    pub(super) slot: u16,
    pub(super) state: u8,
    pub(super) value: V,
    pub(super) second: [u64; W],
    pub(super) rest: R,
    pub(super) timer: Links,
    /// Neighbours among the young; of a free one, `next` is the next free one.
    pub(super) age: Links,
}

// SAFETY: integers and two values for all of which zero is a value.
unsafe impl<const W: usize, V: AllZeroValid, R: AllZeroValid> AllZeroValid for Entry<W, V, R> {}

impl<const W: usize, V, R> Entry<W, V, R> {
    #[inline]
    pub(super) fn key(&self, second: bool) -> &[u64; W] {
        if second { &self.second } else { &self.first }
    }

    /// Whether a key is the one of this flow that was found.
    #[inline]
    pub(super) fn has(&self, key: &[u64; W], found: Found) -> bool {
        let wants = if found.by_second() { LIVE | TWO_KEYS } else { LIVE };
        self.state & wants == wants && self.key(found.by_second()) == key
    }

    /// Asks for what a packet needs that is found by the first key.
    #[inline]
    pub(super) fn fetch(&self) {
        prefetch::first_for_read(self, std::mem::offset_of!(Self, second));
    }

    /// Asks for what a packet needs that is to have the other key, or is found by the second.
    #[inline]
    pub(super) fn fetch_both(&self) {
        prefetch::first_for_read(self, std::mem::offset_of!(Self, rest));
    }

    /// Asks for all of it, as one that comes or goes is in lists as well.
    #[inline]
    pub(super) fn fetch_all(&self) {
        prefetch::lines_for_read(self);
    }
}

/// What the lists see of flows.
pub(super) trait Slots {
    fn timer(&mut self, flow: u32) -> &mut Links;
    fn slot(&mut self, flow: u32) -> &mut u16;
    fn age(&mut self, flow: u32) -> &mut Links;
}

impl<const W: usize, V, R> Slots for [Entry<W, V, R>] {
    #[inline]
    fn timer(&mut self, flow: u32) -> &mut Links {
        &mut self[flow as usize].timer
    }
    #[inline]
    fn slot(&mut self, flow: u32) -> &mut u16 {
        &mut self[flow as usize].slot
    }
    #[inline]
    fn age(&mut self, flow: u32) -> &mut Links {
        &mut self[flow as usize].age
    }
}

/// The young, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Young {
    /// Flow + 1; 0: none.
    oldest: u32,
    newest: u32,
}

impl Young {
    #[inline]
    pub(super) fn add(&mut self, flows: &mut (impl Slots + ?Sized), flow: u32) {
        let previous = std::mem::replace(&mut self.newest, flow + 1);
        match previous {
            0 => self.oldest = flow + 1,
            _ => flows.age(previous - 1).next = flow + 1,
        }
        *flows.age(flow) = Links { next: 0, previous };
    }

    #[inline]
    pub(super) fn remove(&mut self, flows: &mut (impl Slots + ?Sized), flow: u32) {
        let Links { next, previous } = *flows.age(flow);
        match next {
            0 => self.newest = previous,
            _ => flows.age(next - 1).previous = previous,
        }
        match previous {
            0 => self.oldest = next,
            _ => flows.age(previous - 1).next = next,
        }
    }

    pub(super) fn oldest(&self) -> Option<u32> {
        self.oldest.checked_sub(1)
    }
}
