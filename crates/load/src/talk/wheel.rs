//! The timers of many connections: a wheel of lists that are linked through their slots.

use super::tcb::Tcb;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// Time, in microseconds since an origin, modulo 2³².
pub(super) type Clock = u32;

/// Returns whether `at` is `now` or earlier.
pub(super) fn due(at: Clock, now: Clock) -> bool {
    now.wrapping_sub(at) < 1 << 31
}

/// Lists of slots by the millisecond in which they are due. Slots that are due more than one turn
/// of the wheel ahead wait in the last list before, and are put back then.
#[derive(Debug)]
pub(super) struct Wheel {
    /// First slot of each list.
    lists: Vec<u32>,
    /// The turn that is looked at next, in units of [`STEP`].
    next: u32,
}

/// Number of lists: half a minute's, as long as patience is by default.
const LISTS: u32 = 32_768;
/// Time that a list stands for, in microseconds.
const STEP: u32 = 1024;
/// Bit of a link that says: the index of a list, not of a slot.
const LIST: u32 = 1 << 31;

impl Wheel {
    pub(super) fn new(now: Clock) -> Wheel {
        Wheel { lists: vec![NONE; LISTS as usize], next: now / STEP }
    }

    /// Files a slot by its time, in a list that is looked at no earlier.
    pub(super) fn file(&mut self, slots: &mut [Tcb], number: u32, at: Clock) {
        self.remove(slots, number);
        // A turn later than the time, so that it has come when the list is looked at.
        let turn = (at / STEP).wrapping_add(1);
        let ahead = turn.wrapping_sub(self.next) & (u32::MAX / STEP);
        // Overdue slots come next.
        let ahead = if ahead > u32::MAX / STEP / 2 { 0 } else { ahead.min(LISTS - 1) };
        let list = self.next.wrapping_add(ahead) % LISTS;
        let first = std::mem::replace(&mut self.lists[list as usize], number);
        if let Some(next) = slots.get_mut(first as usize) {
            next.previous = number;
        }
        let tcb = &mut slots[number as usize];
        (tcb.next, tcb.previous, tcb.filed) = (first, LIST | list, at);
        tcb.is_filed = true;
    }

    /// Takes a slot out of its list, if it is in one.
    pub(super) fn remove(&mut self, slots: &mut [Tcb], number: u32) {
        let tcb = &mut slots[number as usize];
        if !std::mem::take(&mut tcb.is_filed) {
            return;
        }
        let (next, previous) = (tcb.next, tcb.previous);
        if let Some(next) = slots.get_mut(next as usize) {
            next.previous = previous;
        }
        match previous & LIST {
            0 => slots[previous as usize].next = next,
            _ => self.lists[(previous & !LIST) as usize] = next,
        }
    }

    /// Takes out a slot whose time has come; `None` if none is left.
    pub(super) fn expired(&mut self, slots: &mut [Tcb], now: Clock) -> Option<u32> {
        // The number of turns wraps with the clock.
        let turns = (now / STEP).wrapping_sub(self.next) & (u32::MAX / STEP);
        if turns > u32::MAX / STEP / 2 {
            return None;
        }
        for _ in 0..=turns {
            let first = self.lists[(self.next % LISTS) as usize];
            if first != NONE {
                self.remove(slots, first);
                return Some(first);
            }
            if self.next == now / STEP {
                break;
            }
            self.next = self.next.wrapping_add(1) & (u32::MAX / STEP);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Slots expire when they are due, within two steps, or are due later than the wheel turns.
        #[test]
        fn slots_expire_when_they_are_due(
            start: u32, steps in prop::collection::vec((0u32..20, any::<bool>(), 0u32..80_000_000, 0u32..1_000_000), 1..200),
        ) {
            let mut now = start;
            let mut slots = vec![Tcb::default(); 20];
            let mut wheel = Wheel::new(now);
            let mut model = BTreeMap::new();
            for (number, add, ahead, passes) in steps {
                if add {
                    let at = now.wrapping_add(ahead);
                    wheel.file(&mut slots, number, at);
                    model.insert(number, at);
                } else {
                    wheel.remove(&mut slots, number);
                    model.remove(&number);
                }
                now = now.wrapping_add(passes);
                while let Some(number) = wheel.expired(&mut slots, now) {
                    let at = model.remove(&number).unwrap();
                    if !due(at, now) {
                        // Early only because it was too far ahead; it is put back.
                        prop_assert!(at.wrapping_sub(now) < 80_000_000 - (LISTS - 2) * STEP);
                        wheel.file(&mut slots, number, at);
                        model.insert(number, at);
                    }
                }
                for at in model.values() {
                    prop_assert!(!due(at.wrapping_add(2 * STEP), now), "{at} {now}");
                }
            }
        }
    }
}
