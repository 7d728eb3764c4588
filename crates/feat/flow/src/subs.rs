//! Outputs by sub-interfaces: what leaves by one belongs to its VLAN, whatever it came with.
//!
//! In layer 2, tags are changed as between two ports of a bridge domain. Otherwise, and for a
//! sub-interface that changes no tags itself, its own replace those of the sub-interface that
//! received the frame.

use thalweg_buffer::{Flags, PktMut};
use thalweg_device::{InterfaceView, TagEdit, TagMatch};
use thalweg_feat_l2::{edit_tags, replace_tags};
use thalweg_wire::vlan::{TAG_LEN, is_tag};

use crate::tags::Tag;

/// Bytes of both MAC addresses, behind which the tags are.
const ADDRESSES: usize = 12;
/// Maximum number of tags that are put in place of others: those of a sub-interface, and some that
/// rules have pushed.
const MOST: usize = 8;

type Bytes = [u8; TAG_LEN];

/// The tags of a sub-interface, the outer one first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SubTags {
    tags: [Bytes; 2],
    count: u8,
}

impl SubTags {
    /// Returns the tags that all frames of a sub-interface have; `None` if these may have any.
    pub(crate) fn of(view: &InterfaceView) -> Option<SubTags> {
        let (_, frames) = view.sub?;
        if let TagMatch::Default | TagMatch::AnyOuter(_) = frames {
            return None;
        }
        let mut all = SubTags::default();
        for (to, tag) in all.tags.iter_mut().zip(frames.known()) {
            let ([a, b], [c, d]) = (tag.kind.tpid().to_be_bytes(), tag.id.0.to_be_bytes());
            *to = [a, b, c, d];
            all.count += 1;
        }
        Some(all)
    }

    fn as_slice(&self) -> &[Bytes] {
        self.tags.get(..usize::from(self.count)).unwrap_or_default()
    }
}

/// Number of tags that rules have pushed onto a frame, and popped of those that it came with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changed {
    pushed: u8,
    popped: u8,
}

impl Changed {
    /// Notes a change; `was`: whether there was a tag before.
    pub(crate) fn note(&mut self, tag: Tag, was: bool) {
        let count = match (tag, was) {
            (Tag::Pop, true) if self.pushed > 0 => {
                self.pushed -= 1;
                return;
            }
            (Tag::Pop, true) => &mut self.popped,
            (Tag::Push(_), _) | (Tag::Id(_) | Tag::Priority(_), false) => &mut self.pushed,
            _ => return,
        };
        *count = count.saturating_add(1);
    }
}

/// A change of a frame's tags for one output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Retag {
    /// None: the sub-interface sends frames with any tags.
    Keep,
    /// The change of the port in layer 2 that has received it; the change of the one that sends it
    /// follows.
    Received(TagEdit),
    /// Tags that replace those of the sub-interface that has received it.
    Replace { own: SubTags, changed: Changed, by: SubTags },
}

/// Data to undo a change: the tags that were removed, how many were put in their place, and the
/// flags before.
#[derive(Debug)]
pub(crate) struct Undo {
    removed: [Bytes; MOST],
    count: usize,
    put: usize,
    flags: Flags,
}

/// The first tags of a frame, and how many there are.
fn front(frame: &[u8]) -> ([Bytes; MOST], usize) {
    let (mut tags, mut count) = ([Bytes::default(); MOST], 0);
    let all = frame.get(ADDRESSES..).unwrap_or_default().as_chunks::<TAG_LEN>().0;
    let found = all.iter().take_while(|tag| is_tag(u16::from_be_bytes([tag[0], tag[1]])));
    for (to, tag) in tags.iter_mut().zip(found) {
        *to = *tag;
        count += 1;
    }
    (tags, count)
}

/// Returns whether tags are those of a sub-interface, whatever their priorities.
fn are(found: &[Bytes], tags: &[Bytes]) -> bool {
    let word = |tag: &Bytes| u32::from_be_bytes(*tag) & 0xffff_0fff;
    found.len() == tags.len() && found.iter().zip(tags).all(|(a, b)| word(a) == word(b))
}

impl Retag {
    /// Changes a frame; `None`, with nothing done, if there is no room.
    pub(crate) fn apply(self, p: &mut PktMut<'_>) -> Option<Undo> {
        let (tags, found) = front(p.data());
        let flags = p.flags();
        let mut undo = Undo { removed: tags, count: 0, put: 0, flags };
        match self {
            Retag::Keep => {}
            // A frame with fewer tags has lost them to a rule.
            Retag::Received(edit) => {
                if edit_tags(&edit, p) {
                    (undo.count, undo.put) = (edit.pop(), edit.push().len());
                }
            }
            Retag::Replace { own, changed, by } => {
                let by = by.as_slice();
                if !by.is_empty() && are(tags.get(..by.len().min(found))?, by) {
                    return Some(undo);
                }
                let pushed = found.min(changed.pushed.into());
                let own = usize::from(own.count.saturating_sub(changed.popped)).min(found - pushed);
                let (old, new) = (pushed + own, by.len() + pushed);
                let tci = |tag: &Bytes| u16::from_be_bytes([tag[2], tag[3]]);
                // Rewrites do the same: the priority of a tag that goes is that of the new ones.
                let gone = tags.get(pushed).filter(|_| own > 0);
                let priority =
                    gone.map_or(flags.priority(), |tag| Flags::of_priority(tci(tag)).priority());
                let mut put = [Bytes::default(); MOST];
                for (to, tag) in put.get_mut(..by.len())?.iter_mut().zip(by) {
                    *to = *tag;
                    to[2] |= (priority >> 8) as u8;
                }
                put.get_mut(by.len()..new)?.copy_from_slice(tags.get(..pushed)?);
                if !replace_tags(p, old, put.get(..new)?) {
                    return None;
                }
                if by.is_empty() && priority != flags.priority() {
                    p.unmark(Flags::PRIORITY);
                    p.mark(Flags::of_priority(priority));
                }
                p.note_retagging();
                (undo.count, undo.put) = (old, new);
            }
        }
        Some(undo)
    }
}

impl Undo {
    /// Makes the frame what it was.
    pub(crate) fn undo(&self, p: &mut PktMut<'_>) {
        // The tags that were here leave room.
        if replace_tags(p, self.put, self.removed.get(..self.count).unwrap_or_default()) {
            p.unmark(Flags::PRIORITY);
            p.unmark(Flags::RETAGGED);
            p.mark(self.flags);
        }
    }
}
