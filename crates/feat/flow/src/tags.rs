//! VLAN tags of frames: more of them, fewer, and what they say.

use thalweg_buffer::PktMut;

use crate::rule::key::{self, Words, ether};

/// What is done about the outermost tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Another one comes before it, of this EtherType, with identifier and priority 0.
    Push(u16),
    /// It goes, if there is one.
    Pop,
    /// Its identifier is set; without a tag, there is one then.
    Id(u16),
    /// Its priority is set; without a tag, there is one then.
    Priority(u8),
}

/// Whether a frame has a tag.
pub(crate) fn is_tagged(frame: &[u8]) -> bool {
    let kind = frame.get(12..14).map(|kind| u16::from_be_bytes([kind[0], kind[1]]));
    matches!(kind, Some(ether::VLAN | ether::QINQ)) && frame.len() >= 18
}

/// Does it; false if there is no room for another tag.
pub(crate) fn apply(packet: &mut PktMut<'_>, tag: Tag) -> bool {
    match (tag, is_tagged(packet.data())) {
        (Tag::Push(kind), _) => push(packet, kind, 0),
        (Tag::Id(id), false) => push(packet, ether::VLAN, id & 0xfff),
        (Tag::Priority(priority), false) => push(packet, ether::VLAN, u16::from(priority) << 13),
        (Tag::Id(id), true) => put(packet, 0xf000, id & 0xfff),
        (Tag::Priority(priority), true) => put(packet, 0x1fff, u16::from(priority) << 13),
        (Tag::Pop, true) => {
            packet.data_mut().copy_within(..12, 4);
            packet.pull(4)
        }
        (Tag::Pop, false) => true,
    }
}

fn push(packet: &mut PktMut<'_>, kind: u16, tci: u16) -> bool {
    if packet.data().len() < 14 || packet.push(4).is_none() {
        return false;
    }
    let data = packet.data_mut();
    data.copy_within(4..16, 0);
    data[12..14].copy_from_slice(&kind.to_be_bytes());
    data[14..16].copy_from_slice(&tci.to_be_bytes());
    true
}

/// Sets what `keep` leaves of a tag.
fn put(packet: &mut PktMut<'_>, keep: u16, value: u16) -> bool {
    if let Some(tci) = packet.data_mut().get_mut(14..16) {
        let old = u16::from_be_bytes([tci[0], tci[1]]);
        tci.copy_from_slice(&(old & keep | value).to_be_bytes());
    }
    true
}

/// The fields of a packet of which this was done; what is behind a tag that is not the first can be
/// read once the first has gone. `was` tells whether there was a tag.
pub(crate) fn note(words: &mut Words, tag: Tag, was: bool, frame: &[u8]) {
    match tag {
        Tag::Pop if was => {
            let old = *words;
            key::read(key::IN_PORT.get(&old) as u32, frame, words);
            key::keep_tracked(words, &old);
        }
        Tag::Pop => {}
        _ => {
            let tci = frame.get(14..16).map_or(0, |tci| u16::from_be_bytes([tci[0], tci[1]]));
            key::VLAN.set(words, u64::from(tci & 0xefff | 0x1000));
        }
    }
}
