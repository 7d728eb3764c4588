//! Expiry of flows: a timer wheel of lists, turned in small steps.
//!
//! A flow is in the list of the slot in which it was due when it was put there. Most packets only
//! move its expiry further away, which is a store to the flow: the wheel finds the flow in its old
//! slot and puts it into a later one then. Only an expiry that comes earlier moves it at once.
//! Expiries beyond the horizon are checked once a turn, so there is one wheel and nothing cascades.

use super::entry::{Links, Slots};

/// A moment in milliseconds, of any clock that does not jump; it wraps after 49 days. Two moments
/// are compared as if they were less than 24 days apart.
pub type Millis = u32;

/// Maximum time between now and the expiry of a flow: 12 days.
pub const MAX_TIMEOUT: Millis = 1 << 30;

/// Returns true if `at` has come.
#[inline]
pub fn is_due(at: Millis, now: Millis) -> bool {
    now.wrapping_sub(at) < 1 << 31
}

/// Milliseconds of a slot, as a power of two.
pub(super) const SLOT: u32 = 7;
/// Slots of a turn, which takes 8.7 minutes.
const SLOTS: u32 = 4096;

/// Mask of slot numbers since the clock's zero.
const WRAP: u32 = u32::MAX >> SLOT;

/// Heads of the slots' lists, and how far the wheel has been turned.
#[derive(Debug)]
pub(super) struct Wheel {
    heads: Box<[u32]>,
    /// The slot that is checked next, counted since the clock's zero.
    hand: u32,
}

impl Wheel {
    pub(super) fn new(now: Millis) -> Wheel {
        Wheel { heads: vec![0; SLOTS as usize].into(), hand: now >> SLOT }
    }

    /// Returns a moment when all slots that are in use are over.
    #[cfg(test)]
    pub(super) fn after_a_turn(&self) -> Millis {
        self.hand.wrapping_add(SLOTS) << SLOT
    }

    /// Returns the slot of a moment: not before the hand, and not a whole turn away.
    #[inline]
    fn slot(&self, at: Millis) -> u32 {
        let ahead = (at >> SLOT).wrapping_sub(self.hand) & WRAP;
        let ahead = if ahead > WRAP / 2 { 0 } else { ahead.min(SLOTS - 1) };
        self.hand.wrapping_add(ahead) % SLOTS
    }

    /// Adds a flow that is in no slot.
    #[inline]
    pub(super) fn add(&mut self, flows: &mut (impl Slots + ?Sized), flow: u32, at: Millis) {
        let slot = self.slot(at);
        let head = &mut self.heads[slot as usize];
        let next = std::mem::replace(head, flow + 1);
        if next != 0 {
            flows.timer(next - 1).previous = flow + 1;
        }
        *flows.timer(flow) = Links { next, previous: 0 };
        *flows.slot(flow) = slot as u16;
    }

    /// Removes a flow.
    #[inline]
    pub(super) fn remove(&mut self, flows: &mut (impl Slots + ?Sized), flow: u32) {
        let Links { next, previous } = *flows.timer(flow);
        if next != 0 {
            flows.timer(next - 1).previous = previous;
        }
        match previous {
            0 => self.heads[usize::from(*flows.slot(flow))] = next,
            _ => flows.timer(previous - 1).next = next,
        }
    }

    /// Ensures that a flow is checked soon enough after its expiry was changed.
    #[inline]
    pub(super) fn moved(&mut self, flows: &mut (impl Slots + ?Sized), flow: u32, at: Millis) {
        let ahead = |slot: u32| slot.wrapping_sub(self.hand) % SLOTS;
        if ahead(self.slot(at)) < ahead(u32::from(*flows.slot(flow))) {
            self.remove(flows, flow);
            self.add(flows, flow, at);
        }
    }

    /// Returns a flow whose slot is over, if there is one for now.
    #[inline]
    pub(super) fn due(&mut self, now: Millis) -> Option<u32> {
        let today = now >> SLOT;
        let behind = today.wrapping_sub(self.hand) & WRAP;
        if behind > WRAP / 2 {
            return None;
        }
        for _ in 0..behind.min(SLOTS) {
            match self.heads[(self.hand % SLOTS) as usize] {
                0 => self.hand = self.hand.wrapping_add(1) & WRAP,
                flow => return Some(flow - 1),
            }
        }
        // A whole turn without a flow: there is none.
        self.hand = today;
        None
    }
}
