//! Pushes, pops and sets VLAN tags of frames.

use thalweg_buffer::PktMut;
use thalweg_feat_l2::replace_tags;
use thalweg_wire::vlan::is_tag;

use crate::rule::key::{self, Words, ether};

/// A change of the outermost VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Adds a tag with this EtherType, VLAN 0 and priority 0.
    Push(u16),
    /// Removes the tag, if there is one.
    Pop,
    /// Sets the VLAN; adds a tag if there is none.
    Id(u16),
    /// Sets the priority; adds a tag if there is none.
    Priority(u8),
}

/// Returns whether a frame has a tag.
pub(crate) fn is_tagged(frame: &[u8]) -> bool {
    let kind = frame.get(12..14).map(|kind| u16::from_be_bytes([kind[0], kind[1]]));
    kind.is_some_and(is_tag) && frame.len() >= 18
}

/// Applies a change. Returns false if there is no room for another tag.
pub(crate) fn apply(packet: &mut PktMut<'_>, tag: Tag) -> bool {
    match (tag, is_tagged(packet.data())) {
        (Tag::Push(kind), _) => push(packet, kind, 0),
        (Tag::Id(id), false) => push(packet, ether::VLAN, id & 0xfff),
        (Tag::Priority(priority), false) => push(packet, ether::VLAN, u16::from(priority) << 13),
        (Tag::Id(id), true) => put(packet, 0xf000, id & 0xfff),
        (Tag::Priority(priority), true) => put(packet, 0x1fff, u16::from(priority) << 13),
        (Tag::Pop, true) => replace_tags(packet, 1, &[]),
        (Tag::Pop, false) => true,
    }
}

fn push(packet: &mut PktMut<'_>, kind: u16, tci: u16) -> bool {
    let ([a, b], [c, d]) = (kind.to_be_bytes(), tci.to_be_bytes());
    replace_tags(packet, 0, &[[a, b, c, d]])
}

/// Sets the bits of a tag that `keep` does not cover.
fn put(packet: &mut PktMut<'_>, keep: u16, value: u16) -> bool {
    if let Some(tci) = packet.data_mut().get_mut(14..16) {
        let old = u16::from_be_bytes([tci[0], tci[1]]);
        tci.copy_from_slice(&(old & keep | value).to_be_bytes());
    }
    true
}

/// Updates the fields of a packet after a change. Fields after the removed tag become readable.
/// `was`: whether there was a tag before.
pub(crate) fn note(words: &mut Words, tag: Tag, was: bool, packet: &PktMut<'_>) {
    let frame = packet.data();
    match tag {
        Tag::Pop if was => {
            let old = *words;
            let in_port = key::IN_PORT.get(&old) as u32;
            key::read(in_port, frame, packet.total_len(), true, words);
            key::keep_tracked(words, &old);
        }
        Tag::Pop => {}
        _ => {
            let tci = frame.get(14..16).map_or(0, |tci| u16::from_be_bytes([tci[0], tci[1]]));
            key::VLAN.set(words, u64::from(tci & 0xefff | 0x1000));
        }
    }
}
