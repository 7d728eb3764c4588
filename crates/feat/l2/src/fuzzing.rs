//! Fuzzing entry: tag rewrites of any bytes, one by one and in frames, against a naive model.

#![allow(clippy::panic, clippy::expect_used, clippy::unwrap_used)]

use crate::rewriting::{apply_all, edit_tags};
use std::sync::{Mutex, PoisonError};
use thalweg_buffer::{Cache, Flags, Frame, Pool, PoolConfig};
use thalweg_device::{TagEdit, TagKind, TagRewrite, VlanTag};
use thalweg_wire::vlan::{self, VlanId};

/// Buffers, which are made once.
static CACHE: Mutex<Option<Cache>> = Mutex::new(None);

fn new_cache() -> Cache {
    Cache::new(Pool::new(&PoolConfig { buffers: 512, ..PoolConfig::default() }).expect("memory"))
}

/// A frame, and the priority of a tag that was removed from it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Model {
    bytes: Vec<u8>,
    kept: u16,
}

/// Changes the tags of a frame, as the rules say; `None` if it has too few.
fn changed(edit: &TagEdit, frame: &Model) -> Option<Model> {
    let word = |at: usize| {
        let bytes = frame.bytes.get(at..at + 2)?;
        Some(u16::from(bytes[0]) << 8 | u16::from(bytes[1]))
    };
    let is_tag = |at: usize| word(at).is_some_and(vlan::is_tag);
    let behind = 12 + 4 * edit.pop();
    if frame.bytes.len() < behind + 2 || (12..behind).step_by(4).any(|at| !is_tag(at)) {
        return None;
    }
    let outer = word(14).filter(|_| is_tag(12)).map_or(0, |tci| tci & 0xf000);
    let priority = if edit.pop() == 0 && frame.kept != 0 { frame.kept } else { outer };
    let mut bytes = frame.bytes[..12].to_vec();
    for [a, b, c, d] in edit.push() {
        bytes.extend([*a, *b, c | (priority >> 8) as u8, *d]);
    }
    bytes.extend(&frame.bytes[behind..]);
    let kept = if edit.push().is_empty() { priority } else { frame.kept };
    Some(Model { bytes, kept })
}

fn of_packet(frame: &mut Frame, i: u8) -> Model {
    let p = frame.pkt(i);
    Model { bytes: p.data().to_vec(), kept: p.flags().priority() }
}

/// Changes all packets of a frame, one by one, or by the kernel if that takes them.
fn change(edit: &TagEdit, frame: &mut Frame, models: &mut [Model], kernel: bool) {
    let n = frame.len() as u8;
    let rest = if kernel { apply_all(edit, frame) } else { None };
    for (i, model) in (0..n).zip(models) {
        let by_kernel = rest.as_ref().is_some_and(|rest| !rest.contains(i));
        let done = by_kernel || edit_tags(edit, &mut frame.pkt(i));
        let wanted = changed(edit, model);
        assert_eq!(done, wanted.is_some(), "{edit:?} of {model:02x?}");
        *model = wanted.unwrap_or_else(|| model.clone());
        assert_eq!(of_packet(frame, i), *model, "{edit:?}");
    }
}

/// The first bytes are two rewrites, of which the second is undone after the first; then come
/// packets: length, and up to 63 bytes, of which the first twelve are addresses.
pub fn fuzz_rewrites(data: &[u8]) {
    let Some(([how, tags @ ..], mut rest)) = data.split_first_chunk::<9>() else { return };
    let tag = |at: usize| {
        let id = VlanId(1 + (u16::from(tags[at]) << 4 | u16::from(tags[at + 1] >> 4)) % 4094);
        VlanTag { kind: if tags[at + 1] & 1 == 0 { TagKind::Dot1q } else { TagKind::Dot1ad }, id }
    };
    let rewrite = |pop: u8, push: u8, at: usize| TagRewrite {
        pop: pop % 3,
        push: (0..usize::from(push % 3)).map(|n| tag(at + 2 * n)).collect(),
    };
    let (one, two) = (rewrite(how & 3, how >> 2 & 3, 0), rewrite(how >> 4 & 3, how >> 6, 4));
    let edits = [one.edits(None).0, two.edits(None).0];
    let mut bytes = Vec::new();
    while let Some((len, more)) = rest.split_first()
        && bytes.len() < 256
    {
        let (packet, more) = more.split_at(more.len().min(usize::from(len & 63)));
        bytes.push(packet.to_vec());
        rest = more;
    }
    for kernel in [false, true] {
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = cache.get_or_insert_with(new_cache);
        let mut frame = Frame::new();
        let mut models = Vec::new();
        for bytes in &bytes {
            let mut packet = cache.alloc().expect("a buffer");
            assert!(packet.fill(bytes, cache));
            assert!(frame.push(packet).is_ok(), "room");
            models.push(Model { bytes: bytes.clone(), kept: 0 });
        }
        for edit in edits.iter().filter(|edit| !edit.is_none()) {
            change(edit, &mut frame, &mut models, kernel);
        }
        let priorities = models.iter().any(|m| m.kept != 0);
        assert!(!priorities || frame.flags().intersects(Flags::PRIORITY));
        cache.free_frame(&mut frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Frames that mostly have tags.
    fn packet() -> impl Strategy<Value = Vec<u8>> {
        let tag = (any::<bool>(), any::<u16>()).prop_map(|(s, tci)| {
            let [c, d] = tci.to_be_bytes();
            if s { vec![0x88, 0xa8, c, d] } else { vec![0x81, 0, c, d] }
        });
        let rest = prop::collection::vec(any::<u8>(), 0..30);
        (prop::collection::vec(tag, 0..5), rest).prop_map(|(tags, rest)| {
            let bytes = [vec![2; 12], tags.concat(), rest].concat();
            [vec![bytes.len().min(63) as u8], bytes[..bytes.len().min(63)].to_vec()].concat()
        })
    }

    proptest! {
        #[test]
        fn any_frames(
            head in prop::collection::vec(any::<u8>(), 9),
            packets in prop::collection::vec(packet(), 0..40),
        ) {
            fuzz_rewrites(&[head, packets.concat()].concat());
        }

        #[test]
        fn any_bytes(data in prop::collection::vec(any::<u8>(), 0..2000)) {
            fuzz_rewrites(&data);
        }
    }
}
