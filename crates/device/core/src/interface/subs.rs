//! Sub-interfaces of a port, and the frames that belong to them.

use super::{DeviceError, SwIfIndex};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use thalweg_tables::SparseArray;
use thalweg_wire::vlan::{MAX_ID, TAG_LEN, VlanId};

/// Kind of a VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TagKind {
    /// IEEE 802.1Q, TPID 0x8100.
    Dot1q,
    /// IEEE 802.1ad, TPID 0x88a8.
    Dot1ad,
}

impl TagKind {
    /// Returns the TPID.
    #[must_use]
    pub const fn tpid(self) -> u16 {
        match self {
            TagKind::Dot1q => 0x8100,
            TagKind::Dot1ad => 0x88a8,
        }
    }

    #[inline(always)]
    fn of(ethertype: u16) -> Option<TagKind> {
        match ethertype {
            0x8100 => Some(TagKind::Dot1q),
            0x88a8 => Some(TagKind::Dot1ad),
            _ => None,
        }
    }
}

impl fmt::Display for TagKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TagKind::Dot1q => "dot1q",
            TagKind::Dot1ad => "dot1ad",
        })
    }
}

/// A VLAN tag without its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VlanTag {
    /// Kind.
    pub kind: TagKind,
    /// Id, 1 to 4094.
    pub id: VlanId,
}

impl VlanTag {
    /// An 802.1Q tag.
    #[must_use]
    pub const fn dot1q(id: u16) -> VlanTag {
        VlanTag { kind: TagKind::Dot1q, id: VlanId(id) }
    }

    /// An 802.1ad tag.
    #[must_use]
    pub const fn dot1ad(id: u16) -> VlanTag {
        VlanTag { kind: TagKind::Dot1ad, id: VlanId(id) }
    }

    pub(super) fn bytes(self) -> [u8; TAG_LEN] {
        let ([a, b], [c, d]) = (self.kind.tpid().to_be_bytes(), self.id.0.to_be_bytes());
        [a, b, c, d]
    }
}

/// Frames of its port that a sub-interface receives. Several may match a frame:
/// [`Pair`](Self::Pair) comes first, then [`AnyInner`](Self::AnyInner), [`Outer`](Self::Outer),
/// [`AnyOuter`](Self::AnyOuter), [`Default`](Self::Default).
///
/// One that is `exact` receives no frames with further tags. Only these carry packets of the
/// router, as it knows the tags to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TagMatch {
    /// Frames without tags, or with a priority tag (id 0).
    Untagged,
    /// Tagged frames that no other sub-interface receives.
    Default,
    /// A first tag of this kind.
    AnyOuter(TagKind),
    /// This first tag.
    Outer {
        /// The tag.
        tag: VlanTag,
        /// No other tag follows.
        exact: bool,
    },
    /// This first tag, and a second one.
    AnyInner(VlanTag),
    /// Two tags.
    Pair {
        /// First tag.
        outer: VlanTag,
        /// Second tag.
        inner: VlanTag,
        /// No other tag follows.
        exact: bool,
    },
}

impl TagMatch {
    /// Checks the ids.
    pub(super) fn check(self) -> Result<(), DeviceError> {
        let ids = match self {
            TagMatch::Untagged | TagMatch::Default | TagMatch::AnyOuter(_) => [VlanId(1); 2],
            TagMatch::Outer { tag, .. } | TagMatch::AnyInner(tag) => [tag.id, VlanId(1)],
            TagMatch::Pair { outer, inner, .. } => [outer.id, inner.id],
        };
        match ids.into_iter().find(|id| *id == VlanId(0) || *id > MAX_ID) {
            None => Ok(()),
            Some(id) => {
                let (max, found) = (u64::from(MAX_ID.0), u64::from(id.0));
                Err(DeviceError::Range { what: "VLAN id", min: 1, max, found })
            }
        }
    }

    /// Returns the tags of frames that are sent; `None` if they are not known.
    #[must_use]
    pub fn tags(self) -> Option<Tags> {
        match self {
            TagMatch::Untagged => Some(Tags::default()),
            TagMatch::Outer { tag, exact: true } => Some(Tags::of(&[tag])),
            TagMatch::Pair { outer, inner, exact: true } => Some(Tags::of(&[outer, inner])),
            _ => None,
        }
    }

    fn is_exact(self) -> bool {
        matches!(self, TagMatch::Outer { exact: true, .. } | TagMatch::Pair { exact: true, .. })
    }
}

/// Words of `create sub-interfaces` after the number.
impl fmt::Display for TagMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TagMatch::Untagged => f.write_str("untagged")?,
            TagMatch::Default => f.write_str("default")?,
            TagMatch::AnyOuter(kind) => write!(f, "{kind} any")?,
            TagMatch::Outer { tag, .. } => write!(f, "{} {}", tag.kind, tag.id)?,
            TagMatch::AnyInner(tag) => write!(f, "{} {} inner-dot1q any", tag.kind, tag.id)?,
            TagMatch::Pair { outer: o, inner: i, .. } => {
                write!(f, "{} {} inner-{} {}", o.kind, o.id, i.kind, i.id)?;
            }
        }
        f.write_str(if self.is_exact() { " exact-match" } else { "" })
    }
}

/// The tags of an interface's frames, as they stand between the MAC addresses and the ethertype.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    bytes: [u8; 2 * TAG_LEN],
    len: u8,
}

impl Tags {
    /// No tags.
    pub const NONE: Tags = Tags { bytes: [0; 2 * TAG_LEN], len: 0 };

    fn of(tags: &[VlanTag]) -> Tags {
        let mut all = Tags::NONE;
        for (to, tag) in all.bytes.as_chunks_mut().0.iter_mut().zip(tags) {
            *to = tag.bytes();
            all.len += TAG_LEN as u8;
        }
        all
    }

    /// Returns them as bytes.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Returns an untagged frame with these tags.
    #[must_use]
    pub fn insert(&self, frame: &[u8]) -> Vec<u8> {
        let (addresses, rest) = frame.split_at(frame.len().min(12));
        [addresses, self.as_slice(), rest].concat()
    }
}

/// VLAN ids, and kinds of tags.
const SLOTS: usize = 2 * 4096;
/// Id under which a match of any id is stored; no frame may have it (IEEE 802.1Q-2018, table 9-2).
const ANY: VlanId = VlanId(0xfff);
/// Mark of an exact match. The other bits are the interface, 0 for none.
const EXACT: u32 = 1 << 31;

type Slots = SparseArray<AtomicU32, SLOTS>;

/// The sub-interfaces of a port by their tags. The main thread adds and removes them in place, one
/// word each.
#[derive(Debug, Default)]
pub struct Subs {
    /// Slots by first tag.
    outer: Slots,
    /// Slots by first tag, whatever the second one is.
    any_inner: Slots,
    /// Slots by first tag, then by the second one.
    pairs: OnceLock<Box<[OnceLock<Slots>]>>,
    default: AtomicU32,
    untagged: AtomicU32,
}

/// Reason why a frame belongs to no interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoInterface {
    /// The frame ends within its header.
    Short,
    /// No sub-interface has its tags.
    Unknown,
}

fn slot(tag: VlanTag) -> u32 {
    u32::from(tag.kind == TagKind::Dot1ad) << 12 | u32::from(tag.id.0 & 0xfff)
}

/// Reads the kind and id of a tag from an ethertype and the bytes after it, and the next ethertype.
#[inline(always)]
fn tag(kind: TagKind, bytes: [u8; TAG_LEN]) -> (VlanTag, u16) {
    let [a, b, c, d] = bytes;
    (VlanTag { kind, id: VlanId(u16::from_be_bytes([a, b]) & 0xfff) }, u16::from_be_bytes([c, d]))
}

#[inline(always)]
fn load(at: &AtomicU32, has_more_tags: bool) -> Option<SwIfIndex> {
    let value = at.load(Ordering::Acquire);
    let fits = value != 0 && !(has_more_tags && value & EXACT != 0);
    fits.then_some(SwIfIndex(value & !EXACT))
}

/// Returns the length of a frame's Ethernet header with its tags, as [`Subs::find`] does, if it is
/// so long.
#[must_use]
pub fn header_len(frame: &[u8]) -> usize {
    let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let is_tag = |at: usize| word(at).is_some_and(|kind| TagKind::of(kind).is_some());
    match (is_tag(12), word(14).is_some_and(|tci| tci & 0xfff == 0)) {
        (false, _) => 14,
        (true, true) => 18,
        (true, false) => 18 + if is_tag(16) { TAG_LEN } else { 0 },
    }
}

impl Subs {
    /// Returns the interface that a frame belongs to, 0 for the port itself, and the length of its
    /// header with the tags that were looked at.
    ///
    /// # Errors
    /// [`NoInterface`].
    #[inline]
    pub fn find(&self, frame: &[u8]) -> Result<(SwIfIndex, usize), NoInterface> {
        let [.., a, b] = *frame.first_chunk::<14>().ok_or(NoInterface::Short)?;
        let port = || self.untagged.load(Ordering::Acquire);
        let Some(kind) = TagKind::of(u16::from_be_bytes([a, b])) else {
            return Ok((SwIfIndex(port()), 14));
        };
        let after = |at: usize| frame.get(at..).and_then(|rest| rest.first_chunk().copied());
        let (outer, next) = tag(kind, after(14).ok_or(NoInterface::Short)?);
        if outer.id == VlanId(0) {
            return Ok((SwIfIndex(port()), 18));
        }
        let Some(kind) = TagKind::of(next) else {
            return Ok((self.find_outer(outer, false).ok_or(NoInterface::Unknown)?, 18));
        };
        let (inner, next) = tag(kind, after(18).ok_or(NoInterface::Short)?);
        let found = (self.pairs_of(outer))
            .and_then(|pairs| load(pairs.at(slot(inner)), TagKind::of(next).is_some()))
            .or_else(|| load(self.any_inner.at(slot(outer)), false))
            .or_else(|| self.find_outer(outer, true));
        Ok((found.ok_or(NoInterface::Unknown)?, 22))
    }

    /// [Finds](Self::find) the sub-interface of a frame with one tag that is not a priority tag.
    /// Returns 0 for any other frame, and if there is no sub-interface for this tag alone.
    #[inline(always)]
    #[must_use]
    pub fn find_one(&self, frame: &[u8; 24]) -> SwIfIndex {
        let kind = TagKind::of(u16::from_be_bytes([frame[12], frame[13]]));
        let next = TagKind::of(u16::from_be_bytes([frame[16], frame[17]]));
        let id = VlanId(u16::from_be_bytes([frame[14], frame[15]]) & 0xfff);
        match (kind, next) {
            // None has id 0, and 4095 stands for any.
            (Some(kind), None) if id != ANY => {
                load(self.outer.at(slot(VlanTag { kind, id })), false).unwrap_or(SwIfIndex(0))
            }
            _ => SwIfIndex(0),
        }
    }

    #[inline]
    fn find_outer(&self, outer: VlanTag, has_more_tags: bool) -> Option<SwIfIndex> {
        let any = VlanTag { id: ANY, ..outer };
        load(self.outer.at(slot(outer)), has_more_tags)
            .or_else(|| load(self.outer.at(slot(any)), false))
            .or_else(|| load(&self.default, false))
    }

    #[inline]
    fn pairs_of(&self, outer: VlanTag) -> Option<&Slots> {
        self.pairs.get()?.get(slot(outer) as usize)?.get()
    }

    /// Returns where a match is stored.
    fn place(&self, of: TagMatch) -> &AtomicU32 {
        match of {
            TagMatch::Untagged => &self.untagged,
            TagMatch::Default => &self.default,
            TagMatch::AnyOuter(kind) => self.outer.at(slot(VlanTag { kind, id: ANY })),
            TagMatch::Outer { tag, .. } => self.outer.at(slot(tag)),
            TagMatch::AnyInner(tag) => self.any_inner.at(slot(tag)),
            TagMatch::Pair { outer, inner, .. } => {
                let all = self.pairs.get_or_init(|| (0..SLOTS).map(|_| OnceLock::new()).collect());
                // The index is below the number of slots by its construction.
                let of_outer = &all[slot(outer) as usize % SLOTS];
                of_outer.get_or_init(Slots::default).at(slot(inner))
            }
        }
    }

    /// Returns the sub-interface with a match, whether that is exact or not; 0 if there is none.
    pub(super) fn get(&self, of: TagMatch) -> SwIfIndex {
        SwIfIndex(self.place(of).load(Ordering::Relaxed) & !EXACT)
    }

    /// Gives the frames of a match to a sub-interface, or to none (0).
    pub(super) fn set(&self, of: TagMatch, sw_if: SwIfIndex) {
        let exact = if of.is_exact() && sw_if != SwIfIndex(0) { EXACT } else { 0 };
        self.place(of).store(sw_if.0 | exact, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Applies the rules by looking at all sub-interfaces.
    fn expected(all: &BTreeMap<TagMatch, SwIfIndex>, tags: &[VlanTag]) -> Option<SwIfIndex> {
        let find = |of: &dyn Fn(&TagMatch) -> bool| {
            all.iter().find(|(m, _)| of(m)).map(|(_, sw_if)| *sw_if)
        };
        match tags {
            [] => return Some(find(&|m| *m == TagMatch::Untagged).unwrap_or(SwIfIndex(0))),
            [tag, ..] if tag.id.0 == 0 => return expected(all, &[]),
            _ => {}
        }
        let (first, second, n) = (tags[0], tags.get(1).copied(), tags.len());
        find(&|m| match *m {
            TagMatch::Pair { outer, inner, exact } => {
                outer == first && Some(inner) == second && (!exact || n == 2)
            }
            _ => false,
        })
        .or_else(|| find(&|m| *m == TagMatch::AnyInner(first) && n > 1))
        .or_else(|| {
            find(&|m| match *m {
                TagMatch::Outer { tag, exact } => tag == first && (!exact || n == 1),
                _ => false,
            })
        })
        .or_else(|| find(&|m| *m == TagMatch::AnyOuter(first.kind)))
        .or_else(|| find(&|m| *m == TagMatch::Default))
    }

    fn frame(tags: &[VlanTag]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        tags.iter().for_each(|tag| frame.extend(tag.bytes()));
        frame.extend([8, 0, 0x45, 0]);
        frame
    }

    fn vlan(ids: std::ops::Range<u16>) -> impl Strategy<Value = VlanTag> {
        let kind = prop_oneof![Just(TagKind::Dot1q), Just(TagKind::Dot1ad)];
        (kind, ids).prop_map(|(kind, id)| VlanTag { kind, id: VlanId(id) })
    }

    fn any_match() -> impl Strategy<Value = TagMatch> {
        prop_oneof![
            Just(TagMatch::Untagged),
            Just(TagMatch::Default),
            vlan(1..2).prop_map(|tag| TagMatch::AnyOuter(tag.kind)),
            (vlan(1..4), any::<bool>()).prop_map(|(tag, exact)| TagMatch::Outer { tag, exact }),
            vlan(1..4).prop_map(TagMatch::AnyInner),
            (vlan(1..4), vlan(1..4), any::<bool>())
                .prop_map(|(outer, inner, exact)| TagMatch::Pair { outer, inner, exact }),
        ]
    }

    proptest! {
        #[test]
        fn frames_go_to_the_most_specific_match(
            matches in prop::collection::vec((any_match(), any::<bool>()), 0..24),
            frames in prop::collection::vec(prop::collection::vec(vlan(0..5), 0..9), 1..24),
        ) {
            let subs = Subs::default();
            let mut all: BTreeMap<TagMatch, SwIfIndex> = BTreeMap::new();
            for (n, (of, add)) in matches.into_iter().enumerate() {
                let n = SwIfIndex(n as u32 + 1);
                let known = subs.get(of);
                let there = all.iter().find(|(_, sw_if)| **sw_if == known).map(|(m, _)| *m);
                prop_assert_eq!(known != SwIfIndex(0), there.is_some());
                match (add, there) {
                    (true, None) => {
                        subs.set(of, n);
                        all.insert(of, n);
                    }
                    (false, Some(there)) => {
                        subs.set(there, SwIfIndex(0));
                        all.remove(&there);
                    }
                    _ => {}
                }
            }
            for tags in frames {
                let found = subs.find(&frame(&tags)).ok();
                let mut padded = [0; 24];
                let bytes = frame(&tags);
                let n = bytes.len().min(24);
                padded[..n].copy_from_slice(&bytes[..n]);
                match subs.find_one(&padded) {
                    SwIfIndex(0) => {}
                    one => prop_assert_eq!((Some(one), tags.len()), (found.map(|f| f.0), 1)),
                }
                prop_assert_eq!(found.map(|f| f.0), expected(&all, &tags), "{:?}", tags);
                let looked_at = match tags.first() {
                    None => 0,
                    Some(tag) if tag.id.0 == 0 => 1,
                    Some(_) => tags.len().min(2),
                };
                prop_assert!(found.is_none_or(|f| f.1 == 14 + 4 * looked_at));
                prop_assert_eq!(header_len(&frame(&tags)), 14 + 4 * looked_at);
            }
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let subs = Subs::default();
            subs.set(TagMatch::Default, SwIfIndex(7));
            let mut frame = bytes.clone();
            if let Some(kind) = frame.get_mut(12..14) {
                kind.copy_from_slice(&[0x81, 0]);
            }
            prop_assert_eq!(subs.find(&frame) == Err(NoInterface::Short), frame.len() < 18
                || (frame[14] & 15, frame[15]) != (0, 0)
                    && frame.len() < 22
                    && matches!(frame[16..18], [0x81, 0] | [0x88, 0xa8]));
            let (_, _) = (subs.find(&bytes), header_len(&bytes));
        }
    }

    #[test]
    fn matches_have_names_and_limits() {
        let (a, b) = (VlanTag::dot1q(5), VlanTag::dot1ad(4094));
        let exact = true;
        let named = [
            (TagMatch::Untagged, "untagged"),
            (TagMatch::Default, "default"),
            (TagMatch::AnyOuter(TagKind::Dot1ad), "dot1ad any"),
            (TagMatch::Outer { tag: a, exact }, "dot1q 5 exact-match"),
            (TagMatch::AnyInner(b), "dot1ad 4094 inner-dot1q any"),
            (TagMatch::Pair { outer: b, inner: a, exact: false }, "dot1ad 4094 inner-dot1q 5"),
        ];
        for (of, name) in named {
            assert_eq!((of.to_string(), of.check()), (name.into(), Ok(())));
        }
        for id in [0, 4095, 9000] {
            let error = TagMatch::AnyInner(VlanTag::dot1q(id)).check().unwrap_err();
            assert_eq!(error.to_string(), format!("VLAN id must be between 1 and 4094, not {id}"));
        }
        let pair = TagMatch::Pair { outer: b, inner: a, exact };
        let tags = pair.tags().unwrap();
        assert_eq!(tags.as_slice(), [0x88, 0xa8, 0x0f, 0xfe, 0x81, 0, 0, 5]);
        assert_eq!(tags.insert(&frame(&[])), frame(&[b, a]));
        assert_eq!(TagMatch::Default.tags(), None);
        assert_eq!(TagMatch::Untagged.tags(), Some(Tags::NONE));
    }
}
