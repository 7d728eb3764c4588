//! Rewriting of VLAN tags in layer 2: what an interface removes from the tags of its frames, and
//! what it puts in their place.

use super::{DeviceError, InterfaceView, TagKind, TagMatch, VlanTag};
use std::fmt;
use thalweg_wire::vlan::{MAX_ID, TAG_LEN, VlanId};

/// Tags that one rewrite removes or adds at most.
pub const MAX_REWRITTEN: usize = 2;

/// Change that an interface in layer 2 makes to the tags of frames that it receives. Frames that it
/// sends are changed back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagRewrite {
    /// Number of outer tags that are removed, up to two.
    pub pop: u8,
    /// Tags that are put in their place, the outer one first.
    pub push: Vec<VlanTag>,
}

/// A change of a frame's tags, as workers make it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TagEdit {
    pop: u8,
    pushed: u8,
    push: [[u8; TAG_LEN]; MAX_REWRITTEN],
}

impl TagEdit {
    fn new(pop: usize, push: &[VlanTag]) -> TagEdit {
        let mut edit = TagEdit { pop: pop as u8, ..TagEdit::default() };
        for (to, tag) in edit.push.iter_mut().zip(push) {
            *to = tag.bytes();
            edit.pushed += 1;
        }
        edit
    }

    /// Number of tags that a frame must have.
    #[inline]
    #[must_use]
    pub fn pop(&self) -> usize {
        usize::from(self.pop)
    }

    /// Returns whether it changes nothing.
    #[inline]
    #[must_use]
    pub fn is_none(&self) -> bool {
        (self.pop, self.pushed) == (0, 0)
    }

    /// Tags to put in, each with its TPID, and with priority 0.
    #[inline]
    #[must_use]
    pub fn push(&self) -> &[[u8; TAG_LEN]] {
        self.push.get(..usize::from(self.pushed)).unwrap_or_default()
    }
}

impl TagMatch {
    /// Returns the tags that all frames with this match have, the outer one first.
    #[must_use]
    pub fn known(self) -> Vec<VlanTag> {
        match self {
            TagMatch::Untagged | TagMatch::Default | TagMatch::AnyOuter(_) => Vec::new(),
            TagMatch::Outer { tag, .. } | TagMatch::AnyInner(tag) => vec![tag],
            TagMatch::Pair { outer, inner, .. } => vec![outer, inner],
        }
    }
}

impl TagRewrite {
    /// No change.
    pub const NONE: TagRewrite = TagRewrite { pop: 0, push: Vec::new() };

    /// Removes this number of tags.
    #[must_use]
    pub fn pop(n: usize) -> TagRewrite {
        TagRewrite { pop: n as u8, ..TagRewrite::NONE }
    }

    /// Returns the rewrite that documents leave out: a sub-interface in layer 2 removes the tags
    /// that it is known by.
    #[must_use]
    pub fn usual(sub: Option<TagMatch>) -> TagRewrite {
        TagRewrite::pop(sub.map_or(0, |of| of.known().len()))
    }

    /// Returns whether it changes nothing.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.pop == 0 && self.push.is_empty()
    }

    /// Checks the ids, and that the interface knows the tags that are removed.
    pub(super) fn check(&self, v: &InterfaceView) -> Result<(), DeviceError> {
        if !v.ethernet {
            let (name, kind) = (v.name.clone(), v.dev_type.into());
            return Err(DeviceError::Unsupported { name, kind, what: "a tag rewrite".into() });
        }
        let has = v.sub.map_or(0, |(_, of)| of.known().len());
        if usize::from(self.pop) > has {
            return Err(DeviceError::TooFewTags { name: v.name.clone(), has, pop: self.pop });
        }
        match self.push.iter().find(|tag| tag.id == VlanId(0) || tag.id > MAX_ID) {
            None => Ok(()),
            Some(tag) => {
                let (max, found) = (u64::from(MAX_ID.0), u64::from(tag.id.0));
                Err(DeviceError::Range { what: "VLAN id", min: 1, max, found })
            }
        }
    }

    /// Returns the changes of received frames, and of frames to be sent.
    #[must_use]
    pub fn edits(&self, sub: Option<TagMatch>) -> (TagEdit, TagEdit) {
        let known = sub.map_or_else(Vec::new, TagMatch::known);
        let pop = usize::from(self.pop);
        let own = known.get(..pop).unwrap_or_default();
        (TagEdit::new(pop, &self.push), TagEdit::new(self.push.len(), own))
    }

    /// Number and values of the API: operation, whether the outer tag is 802.1Q, two ids.
    #[must_use]
    pub fn to_api(&self) -> (u32, u32, u32, u32) {
        let op = match (self.pop, self.push.len()) {
            (0, n) => n as u32,
            (1, 0) => 3,
            (_, 0) => 4,
            (1, n) => 4 + n as u32,
            (_, n) => 6 + n as u32,
        };
        let id = |n: usize| self.push.get(n).map_or(0, |tag| u32::from(tag.id.0));
        let is_dot1q = self.push.first().is_some_and(|tag| tag.kind == TagKind::Dot1q);
        (op, u32::from(is_dot1q), id(0), id(1))
    }

    /// Reads the API's values; `None` if there is no such operation. Ids that the operation does
    /// not use are ignored.
    #[must_use]
    pub fn from_api(op: u32, dot1q: u32, ids: [u32; 2]) -> Option<TagRewrite> {
        let (pop, n) = match op {
            0 => (0, 0),
            1 | 2 => (0, op),
            3 | 4 => (op - 2, 0),
            5 | 6 => (1, op - 4),
            7 | 8 => (2, op - 6),
            _ => return None,
        };
        let outer = if dot1q != 0 { TagKind::Dot1q } else { TagKind::Dot1ad };
        // No id at all is refused like one out of range.
        let tag = |(kind, id): (TagKind, u32)| VlanTag {
            kind,
            id: VlanId(u16::try_from(id).unwrap_or(u16::MAX)),
        };
        let all = [(outer, ids[0]), (TagKind::Dot1q, ids[1])];
        Some(TagRewrite {
            pop: pop as u8,
            push: all.into_iter().take(n as usize).map(tag).collect(),
        })
    }
}

/// Words of `set interface l2 tag-rewrite`.
impl fmt::Display for TagRewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pop, self.push.len()) {
            (0, 0) => f.write_str("disable")?,
            (0, _) => f.write_str("push")?,
            (n, 0) => write!(f, "pop {n}")?,
            (n, m) => write!(f, "translate {n}-{m}")?,
        }
        let Some(outer) = self.push.first() else { return Ok(()) };
        write!(f, " {}", outer.kind)?;
        self.push.iter().try_for_each(|tag| write!(f, " {}", tag.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eight_operations_have_numbers_words_and_edits() {
        let pair =
            TagMatch::Pair { outer: VlanTag::dot1ad(5), inner: VlanTag::dot1q(6), exact: true };
        let words = [
            "disable",
            "push dot1q 100",
            "push dot1q 100 200",
            "pop 1",
            "pop 2",
            "translate 1-1 dot1q 100",
            "translate 1-2 dot1q 100 200",
            "translate 2-1 dot1q 100",
            "translate 2-2 dot1q 100 200",
        ];
        for (op, words) in (0..).zip(words) {
            let rewrite = TagRewrite::from_api(op, 1, [100, 200]).unwrap();
            assert_eq!(rewrite.to_string(), words);
            let (back, dot1q, tag1, tag2) = rewrite.to_api();
            assert_eq!(TagRewrite::from_api(back, dot1q, [tag1, tag2]), Some(rewrite.clone()));
            assert_eq!(back, op);
            // The way out is the way in, backwards.
            let (rx, tx) = rewrite.edits(Some(pair));
            assert_eq!((rx.pop(), rx.push().len()), (tx.push().len(), tx.pop()));
            let own = [[0x88, 0xa8, 0, 5], [0x81, 0, 0, 6]];
            assert_eq!(tx.push(), &own[..rx.pop()]);
        }
        assert_eq!(TagRewrite::from_api(9, 1, [1, 2]), None);
        let service = TagRewrite::from_api(2, 0, [100, 200]).unwrap();
        assert_eq!(service.to_string(), "push dot1ad 100 200");
        assert_eq!(service.edits(None).0.push(), [[0x88, 0xa8, 0, 100], [0x81, 0, 0, 200]]);
        assert_eq!(TagRewrite::usual(Some(pair)), TagRewrite::pop(2));
        assert_eq!(TagRewrite::usual(None), TagRewrite::NONE);
    }
}
