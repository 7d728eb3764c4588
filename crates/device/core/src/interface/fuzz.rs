//! Fuzzing entry: sub-interfaces come and go, and any bytes are looked up among them as the rules
//! say.

#![allow(clippy::panic)]

use super::subs::{NoInterface, Subs, TagKind, TagMatch, VlanTag, header_len};
use crate::SwIfIndex;
use thalweg_wire::vlan::VlanId;

/// Existing sub-interfaces, in the order in which they came.
pub(super) type Model = Vec<(TagMatch, SwIfIndex)>;

/// Looks at all sub-interfaces for the one that a frame belongs to by the rules, and for the length
/// of its header in bytes.
pub(super) fn expected(all: &Model, frame: &[u8]) -> Result<(SwIfIndex, usize), NoInterface> {
    let word = |at: usize| match frame.get(at..at + 2) {
        Some(bytes) => Ok(u16::from(bytes[0]) << 8 | u16::from(bytes[1])),
        None => Err(NoInterface::Short),
    };
    let find = |of: &dyn Fn(TagMatch) -> bool| all.iter().find(|(m, _)| of(*m)).map(|(_, to)| *to);
    let kind = |ethertype| match ethertype {
        0x8100 => Some(TagKind::Dot1q),
        0x88a8 => Some(TagKind::Dot1ad),
        _ => None,
    };
    let untagged = find(&|m| m == TagMatch::Untagged).unwrap_or_default();
    let (mut tags, mut at) = (Vec::new(), 12);
    while let Some(kind) = kind(word(at)?) {
        if tags.len() == 2 {
            break;
        }
        let id = word(at + 2)? & 0xfff;
        // The type behind it has to be there, too.
        word(at + 4)?;
        tags.push(VlanTag { kind, id: VlanId(id) });
        at += 4;
        if tags.len() == 1 && id == 0 {
            return Ok((untagged, 18));
        }
    }
    let Some(first) = tags.first().copied() else { return Ok((untagged, 14)) };
    let (second, has_third) = (tags.get(1).copied(), kind(word(at)?).is_some());
    let pair = find(&|m| match m {
        TagMatch::Pair { outer, inner, exact } => {
            outer == first && Some(inner) == second && !(exact && has_third)
        }
        _ => false,
    });
    let outer = |m| match m {
        TagMatch::Outer { tag, exact } => tag == first && !(exact && second.is_some()),
        _ => false,
    };
    pair.or_else(|| find(&|m| m == TagMatch::AnyInner(first) && second.is_some()))
        .or_else(|| find(&outer))
        .or_else(|| find(&|m| m == TagMatch::AnyOuter(first.kind)))
        .or_else(|| find(&|m| m == TagMatch::Default))
        .map(|to| (to, at + 2))
        .ok_or(NoInterface::Unknown)
}

/// Returns whether two matches have one place: no two sub-interfaces can have both.
fn is_same(a: TagMatch, b: TagMatch) -> bool {
    match (a, b) {
        (TagMatch::Outer { tag: a, .. }, TagMatch::Outer { tag: b, .. }) => a == b,
        (TagMatch::Pair { outer: a, inner: b, .. }, TagMatch::Pair { outer: c, inner: d, .. }) => {
            (a, b) == (c, d)
        }
        _ => a == b,
    }
}

/// Reads a match; few ids, so that frames meet them.
fn a_match([how, outer, inner]: [u8; 3]) -> TagMatch {
    let tag = |byte: u8| {
        let id = VlanId(1 + u16::from(byte & 3));
        VlanTag { kind: if byte & 4 == 0 { TagKind::Dot1q } else { TagKind::Dot1ad }, id }
    };
    let exact = how & 8 == 0;
    match how & 7 {
        0 => TagMatch::Untagged,
        1 => TagMatch::Default,
        2 => TagMatch::AnyOuter(tag(outer).kind),
        3 | 4 => TagMatch::Outer { tag: tag(outer), exact },
        5 => TagMatch::AnyInner(tag(outer)),
        _ => TagMatch::Pair { outer: tag(outer), inner: tag(inner), exact },
    }
}

fn look_up(subs: &Subs, all: &Model, frame: &[u8]) {
    let (found, wanted) = (subs.find(frame), expected(all, frame));
    assert_eq!(found, wanted, "{frame:02x?} among {all:?}");
    if let Ok((_, len)) = found {
        assert!(len <= frame.len() && header_len(frame) == len, "{frame:02x?}: {len}");
    }
    let mut head = [0; 24];
    let n = frame.len().min(head.len());
    head[..n].copy_from_slice(&frame[..n]);
    match (subs.find_one(&head), found) {
        (SwIfIndex(0), _) => {}
        // The bytes behind a short frame are not its own.
        (one, found) if n >= 18 => assert_eq!(found.ok(), Some((one, 18)), "{frame:02x?}"),
        _ => {}
    }
}

/// The first byte is the number of sub-interfaces, which follow with three bytes each; one whose
/// tags are taken removes that. Frames come last, from their first tag on: length, and 16 bytes.
pub fn fuzz_subs(data: &[u8]) {
    let Some((n, rest)) = data.split_first() else { return };
    let (ops, rest) = rest.split_at(rest.len().min(3 * usize::from(n & 63)));
    let (subs, mut all) = (Subs::default(), Model::new());
    for (op, number) in ops.as_chunks::<3>().0.iter().zip(1..) {
        let of = a_match(*op);
        let there = all.iter().position(|(m, _)| is_same(*m, of));
        let known = there.map_or(SwIfIndex(0), |at| all[at].1);
        assert_eq!(subs.get(of), known, "{of:?} among {all:?}");
        match there {
            Some(at) => {
                let (of, _) = all.remove(at);
                subs.set(of, SwIfIndex(0));
            }
            None => {
                subs.set(of, SwIfIndex(number));
                all.push((of, SwIfIndex(number)));
            }
        }
    }
    for [len, bytes @ ..] in rest.as_chunks::<17>().0 {
        let len = usize::from(*len).min(bytes.len());
        look_up(&subs, &all, &[&[2; 12][..], &bytes[..len]].concat());
    }
    look_up(&subs, &all, rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes(data in prop::collection::vec(any::<u8>(), 0..600)) {
            fuzz_subs(&data);
        }
    }
}
