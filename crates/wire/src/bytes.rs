//! Reading and writing big-endian fields at constant offsets.
//!
//! The callers pass arrays and constant offsets, so that bounds are checked at compile time.

use crate::{Result, WireError};

#[inline(always)]
pub(crate) fn be16<const N: usize>(b: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}

#[inline(always)]
pub(crate) fn be32<const N: usize>(b: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

/// `L` bytes at a constant offset.
#[inline(always)]
pub(crate) fn array<const L: usize, const N: usize>(b: &[u8; N], at: usize) -> [u8; L] {
    let mut out = [0; L];
    out.copy_from_slice(&b[at..at + L]);
    out
}

#[inline(always)]
pub(crate) fn put<const L: usize, const N: usize>(b: &mut [u8; N], at: usize, v: [u8; L]) {
    b[at..at + L].copy_from_slice(&v);
}

/// Splits a fixed header off the front of `data`.
#[inline(always)]
pub(crate) fn header<'a, const N: usize>(
    data: &'a [u8],
    what: &'static str,
) -> Result<(&'a [u8; N], &'a [u8])> {
    match data.split_first_chunk::<N>() {
        Some(parts) => Ok(parts),
        None => Err(WireError::Truncated { what, need: N, have: data.len() }),
    }
}

/// Like [`header`], for changing a header in place.
#[inline(always)]
pub(crate) fn header_mut<'a, const N: usize>(
    data: &'a mut [u8],
    what: &'static str,
) -> Result<(&'a mut [u8; N], &'a mut [u8])> {
    let have = data.len();
    data.split_first_chunk_mut::<N>().ok_or(WireError::Truncated { what, need: N, have })
}

/// Returns the first `N` bytes of a buffer that a header is written into.
#[inline(always)]
pub(crate) fn room<'a, const N: usize>(
    buf: &'a mut [u8],
    what: &'static str,
) -> Result<&'a mut [u8; N]> {
    let have = buf.len();
    buf.first_chunk_mut::<N>().ok_or(WireError::NoRoom { what, need: N, have })
}

/// One option: its kind and the data after its length.
type KindAndData<'a> = (u8, &'a [u8]);

/// Takes the next option off `rest`, in the form that IPv4 and TCP share: kind 0 ends the list,
/// kind 1 is one byte of padding, all others have a length that counts kind and length too.
///
/// A bad length returns an error once and empties `rest`.
pub(crate) fn next_option<'a>(
    rest: &mut &'a [u8],
    what: &'static str,
) -> Option<Result<KindAndData<'a>>> {
    loop {
        match **rest {
            [] | [0, ..] => {
                *rest = &[];
                return None;
            }
            [1, ref behind @ ..] => *rest = behind,
            [kind, length, ..] if length >= 2 && usize::from(length) <= rest.len() => {
                let (option, behind) = rest.split_at(usize::from(length));
                *rest = behind;
                return Some(Ok((kind, &option[2..])));
            }
            [_, ref behind @ ..] => {
                let length = behind.first().map_or(0, |&n| usize::from(n));
                *rest = &[];
                return Some(Err(WireError::BadHeaderLength { what, length }));
            }
        }
    }
}
