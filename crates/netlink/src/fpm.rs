//! Netlink messages in frames of a connection, as FRRouting's `zebra` sends its routes to a
//! *forwarding plane manager* (its module `dplane_fpm_nl`).
//!
//! A frame has a head of four bytes: version 1, kind 1 for netlink, and its length with the head,
//! most significant byte first. One message or several follow.

use thiserror::Error;

use crate::fib::FibNotice;
use crate::wire::{MessageError, Messages};

/// TCP port to which `zebra` connects by default.
pub const PORT: u16 = 2620;
/// Most bytes of a frame with its head.
pub const FRAME_BYTES: usize = u16::MAX as usize;
/// Bytes of a frame's head.
const HEAD: usize = 4;
const VERSION: u8 = 1;
const NETLINK: u8 = 1;

/// A head of a frame that is none: nothing that follows can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Another version of the protocol, or another protocol.
    #[error("a frame has version {0}, not 1")]
    Version(u8),
    /// Messages that are not netlink's, such as those of the module `fpm`.
    #[error("a frame has messages of kind {0}, not netlink's (zebra needs `-M dplane_fpm_nl')")]
    Kind(u8),
    /// A length that does not include the head.
    #[error("a frame has length {0}, less than that of its head")]
    Short(u16),
}

/// Messages of the first frame, and what follows it.
type Parts<'a> = (&'a [u8], &'a [u8]);

/// Encodes messages as a frame, as `zebra` does.
#[must_use]
pub fn frame(messages: &[u8]) -> Vec<u8> {
    // Longer ones do not fit.
    let length = u16::try_from(messages.len() + HEAD).unwrap_or(u16::MAX);
    [&[VERSION, NETLINK][..], &length.to_be_bytes(), messages].concat()
}

/// Splits bytes of a connection into the messages of the first frame and what follows it; `None` if
/// the frame has not come whole.
///
/// # Errors
/// If the bytes do not begin with a frame.
pub fn split(bytes: &[u8]) -> Result<Option<Parts<'_>>, FrameError> {
    match bytes {
        [version, ..] if *version != VERSION => return Err(FrameError::Version(*version)),
        [_, kind, ..] if *kind != NETLINK => return Err(FrameError::Kind(*kind)),
        _ => {}
    }
    let Some(&[_, _, high, low]) = bytes.first_chunk::<HEAD>() else { return Ok(None) };
    let length = u16::from_be_bytes([high, low]);
    if usize::from(length) < HEAD {
        return Err(FrameError::Short(length));
    }
    Ok(bytes.split_at_checked(length.into()).map(|(frame, rest)| (&frame[HEAD..], rest)))
}

/// Hands `each` the routes, labels and next-hop objects that the messages of a frame are about;
/// others are left out.
///
/// # Errors
/// If a message has a wrong length. The messages before it have been handed over.
pub fn read(frame: &[u8], mut each: impl FnMut(FibNotice<'_>)) -> Result<(), MessageError> {
    for raw in Messages::new(frame) {
        let notice = FibNotice::parse(&raw?);
        let is_wanted = |notice: &FibNotice<'_>| {
            !matches!(
                notice,
                FibNotice::Link(..)
                    | FibNotice::LinkGone(_)
                    | FibNotice::Addresses(_)
                    | FibNotice::Lost
            )
        };
        if let Some(notice) = notice.filter(is_wanted) {
            each(notice);
        }
    }
    Ok(())
}

/// Entry for fuzzing: reads bytes of a connection, in pieces and whole.
///
/// # Panics
/// If pieces say something else than the whole, or something is read that cannot be.
pub fn fuzz(data: &[u8]) {
    let (mut rest, mut frames) = (data, 0);
    while let Ok(Some((frame, next))) = split(rest) {
        assert!(frame.len() + HEAD + next.len() == rest.len(), "bytes were lost");
        let _ = read(frame, |notice| match notice {
            FibNotice::Route(_, route) | FibNotice::RouteGone(route) => {
                let bits = if route.destination.0.is_ipv4() { 32 } else { 128 };
                assert!(route.destination.1 <= bits, "{route:?}");
                assert!(route.hops().count() <= frame.len(), "{route:?}");
            }
            FibNotice::NextHop(object) => {
                assert!(object.members().count() <= frame.len(), "{object:?}");
            }
            FibNotice::Label(route) | FibNotice::LabelGone(route) => {
                assert!(route.label < 1 << 20, "{route:?}");
            }
            FibNotice::NextHopGone(_) => {}
            other => unreachable!("{other:?} is no route"),
        });
        (rest, frames) = (next, frames + 1);
    }
    // A connection hands over bytes as they come.
    let (mut held, mut seen) = (Vec::new(), 0);
    for piece in data.chunks(7) {
        held.extend_from_slice(piece);
        while let Ok(Some((_, next))) = split(&held) {
            held = next.to_vec();
            seen += 1;
        }
    }
    assert_eq!(seen, frames);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::message;
    use proptest::prelude::*;

    fn route(kind: u16) -> Vec<u8> {
        message(kind, &[2, 24, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0], |w| {
            w.bytes(1, &[192, 0, 2, 0]).u32(30, 7);
        })
    }

    fn said(frame: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        let _ = read(frame, |notice| {
            let (word, object) = match &notice {
                FibNotice::Route(_, route) => ("route", route.object),
                FibNotice::RouteGone(route) => ("gone", route.object),
                FibNotice::NextHop(object) => ("object", Some(object.id)),
                FibNotice::NextHopGone(id) => ("object gone", Some(*id)),
                _ => ("another", None),
            };
            all.push(format!("{word} {object:?}"));
        });
        all
    }

    /// A change is a deletion and a new route in one frame.
    #[test]
    fn frames_have_one_message_or_several() {
        let object = message(104, &[2, 0, 11, 0, 0, 0, 0, 0], |w| _ = w.u32(1, 7).u32(5, 3));
        let link = message(16, &[0; 16], |_| ());
        let both = [object, link, route(25), route(24)].concat();
        let bytes = [frame(&both), frame(&route(25)), vec![1]].concat();
        let (first, rest) = split(&bytes).unwrap().unwrap();
        assert_eq!(said(first), ["object Some(7)", "gone Some(7)", "route Some(7)"]);
        let (second, rest) = split(rest).unwrap().unwrap();
        assert_eq!((said(second), rest), (vec!["gone Some(7)".to_owned()], &[1][..]));
        assert_eq!(split(rest), Ok(None));
    }

    #[test]
    fn other_heads_are_refused() {
        assert_eq!(split(b"GET / HTTP/1.1"), Err(FrameError::Version(b'G')));
        assert_eq!(split(&[1, 2]), Err(FrameError::Kind(2)));
        assert_eq!(split(&[1, 1, 0, 3]), Err(FrameError::Short(3)));
        assert_eq!(split(&[1, 1, 0, 4]), Ok(Some((&[][..], &[][..]))));
        assert_eq!(split(&[1, 1, 0xff, 0xff, 0]), Ok(None));
    }

    #[test]
    fn a_message_that_leads_out_of_its_frame_ends_it() {
        let mut long = route(24);
        long[0] = 200;
        let both = [route(25), long].concat();
        assert_eq!(said(&both), ["gone Some(7)"]);
        assert!(read(&both, |_| ()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 4..60_u16) {
            let mut bytes = bytes;
            fuzz(&bytes);
            if let Some(head) = bytes.first_chunk_mut::<4>() {
                let [high, low] = cut.to_be_bytes();
                *head = [VERSION, NETLINK, high, low];
            }
            fuzz(&bytes);
        }
    }
}
