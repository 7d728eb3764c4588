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

/// State bits of a flow; none for a free one.
pub(super) const FREE: u8 = 0;
/// The flow has at least one key.
pub(super) const LIVE: u8 = 1;
/// The flow has a second key.
pub(super) const TWO_KEYS: u8 = 2;
/// The flow may be recycled for another.
pub(super) const YOUNG: u8 = 4;

/// A flow. Fields that a packet needs that was found by the first key come first, then those for a
/// packet that needs the other key, or is found by it. Flows of less than 128 bytes are not aligned
/// to cache lines.
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
    /// Neighbours among the young; in a free one, `next` is the next free one.
    pub(super) age: Links,
}

// SAFETY: integers and two values for all of which zero is a value.
unsafe impl<const W: usize, V: AllZeroValid, R: AllZeroValid> AllZeroValid for Entry<W, V, R> {}

impl<const W: usize, V, R> Entry<W, V, R> {
    #[inline]
    pub(super) fn key(&self, second: bool) -> &[u64; W] {
        if second { &self.second } else { &self.first }
    }

    /// Returns true if a key is the one of this flow that was found.
    #[inline]
    pub(super) fn has(&self, key: &[u64; W], found: Found) -> bool {
        let wants = if found.by_second() { LIVE | TWO_KEYS } else { LIVE };
        self.state & wants == wants && self.key(found.by_second()) == key
    }

    /// Prefetches what a packet needs that is found by the first key.
    #[inline]
    pub(super) fn fetch(&self) {
        prefetch::first_for_read(self, std::mem::offset_of!(Self, second));
    }

    /// Prefetches what a packet needs that needs the other key, or is found by the second.
    #[inline]
    pub(super) fn fetch_both(&self) {
        prefetch::first_for_read(self, std::mem::offset_of!(Self, rest));
    }

    /// Prefetches all of it, for a flow that is added or removed, which changes lists as well.
    #[inline]
    pub(super) fn fetch_all(&self) {
        prefetch::lines_for_read(self);
    }
}

/// The lists' view of flows.
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

/// The list of young flows, oldest first.
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
