//! Changing the VLAN tags of a frame in place.

use thalweg_buffer::{Flags, PktMut};
use thalweg_device::TagEdit;
use thalweg_wire::vlan::{self, TAG_LEN};

/// Bytes of both MAC addresses, behind which the tags are.
const ADDRESSES: usize = 12;

/// Changes the tags of a frame; returns false, and does nothing, if it has too few.
///
/// New tags have the priority and drop eligibility of the outermost tag that is removed; else of
/// the one that another rewrite has removed before, or of the outermost tag that stays.
#[inline]
pub(crate) fn apply(edit: &TagEdit, p: &mut PktMut<'_>) -> bool {
    let data = p.data();
    let Some(&addresses) = data.first_chunk::<ADDRESSES>() else { return false };
    let word = |at: usize| data.get(at..)?.first_chunk().copied().map(u16::from_be_bytes);
    let is_tag = |n: usize| word(ADDRESSES + n * TAG_LEN).is_some_and(vlan::is_tag);
    let (pop, push) = (edit.pop(), edit.push());
    // The type behind the tags has to be there, too.
    if !(0..pop).all(is_tag) || data.len() < ADDRESSES + pop * TAG_LEN + 2 {
        return false;
    }
    let outer = if is_tag(0) { word(ADDRESSES + 2) } else { None };
    let outer = outer.map_or(0, |tci| Flags::of_priority(tci).priority());
    let removed = p.flags().priority();
    let priority = if pop == 0 && removed != 0 { removed } else { outer };
    let old = pop * TAG_LEN;
    let new = push.len() * TAG_LEN;
    if old > new {
        p.pull(old - new);
    } else if new > old && p.push(new - old).is_none() {
        return false;
    }
    let header = p.data_mut();
    if let Some(to) = header.first_chunk_mut() {
        *to = addresses;
    }
    for (at, tag) in (ADDRESSES..).step_by(TAG_LEN).zip(push) {
        if let Some(to) = header.get_mut(at..at + TAG_LEN) {
            to.copy_from_slice(tag);
            to[2] |= (priority >> 8) as u8;
        }
    }
    if push.is_empty() && priority != removed {
        p.unmark(Flags::PRIORITY);
        p.mark(Flags::of_priority(priority));
    }
    p.mark(Flags::RETAGGED);
    true
}
