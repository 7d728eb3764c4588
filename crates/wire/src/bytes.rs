//! Fields of headers: big- and little-endian, at offsets.
//!
//! [`be16`] and its kin are for offsets that are known to be within the bytes: those of an array at
//! constant offsets, whose bounds are checked at compile time. [`get`] is for all others.

use crate::{Result, WireError};

/// Two bytes, big-endian.
///
/// # Panics
/// If they are not within `b`.
#[inline(always)]
pub fn be16(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}

/// Four bytes, big-endian.
///
/// # Panics
/// If they are not within `b`.
#[inline(always)]
pub fn be32(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

/// Six bytes, big-endian, such as a MAC address.
///
/// # Panics
/// If they are not within `b`.
#[inline(always)]
pub fn be48(b: &[u8], at: usize) -> u64 {
    u64::from(be16(b, at)) << 32 | u64::from(be32(b, at + 2))
}

/// Eight bytes, big-endian.
///
/// # Panics
/// If they are not within `b`.
#[inline(always)]
pub fn be64(b: &[u8], at: usize) -> u64 {
    // One read: the compiler does not join two of four bytes.
    let mut word = [0; 8];
    word.copy_from_slice(&b[at..at + 8]);
    u64::from_be_bytes(word)
}

/// `L` bytes at an offset, if they are within `b`: `get(b, at).map(u16::from_be_bytes)`.
#[inline(always)]
pub fn get<const L: usize>(b: &[u8], at: usize) -> Option<[u8; L]> {
    b.get(at..)?.first_chunk().copied()
}

/// Two bytes, little-endian, if they are within `b`.
#[inline(always)]
pub fn get_le16(b: &[u8], at: usize) -> Option<u16> {
    get(b, at).map(u16::from_le_bytes)
}

/// Four bytes, little-endian, if they are within `b`.
#[inline(always)]
pub fn get_le32(b: &[u8], at: usize) -> Option<u32> {
    get(b, at).map(u32::from_le_bytes)
}

/// Eight bytes, little-endian, if they are within `b`.
#[inline(always)]
pub fn get_le64(b: &[u8], at: usize) -> Option<u64> {
    get(b, at).map(u64::from_le_bytes)
}

/// Two bytes, big-endian, if they are within `b`.
#[inline(always)]
pub fn get_be16(b: &[u8], at: usize) -> Option<u16> {
    get(b, at).map(u16::from_be_bytes)
}

/// Writes a field; does nothing if it is not within `b`.
#[inline(always)]
pub fn set(b: &mut [u8], at: usize, v: &[u8]) {
    if let Some(room) = b.get_mut(at..).and_then(|b| b.get_mut(..v.len())) {
        room.copy_from_slice(v);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const B: [u8; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

    #[test]
    fn fields_are_in_network_order() {
        assert_eq!((be16(&B, 1), be32(&B, 1)), (0x0102, 0x0102_0304));
        assert_eq!((be48(&B, 1), be64(&B, 1)), (0x0102_0304_0506, 0x0102_0304_0506_0708));
        assert_eq!((get_be16(&B, 7), get_be16(&B, 8)), (Some(0x0708), None));
        assert_eq!((get_le16(&B, 7), get_le16(&B, 8)), (Some(0x0807), None));
        assert_eq!((get_le32(&B, 5), get_le32(&B, 6)), (Some(0x0807_0605), None));
        assert_eq!((get_le64(&B, 1), get_le64(&B, 2)), (Some(0x0807_0605_0403_0201), None));
        assert_eq!((get::<3>(&B, usize::MAX), get::<0>(&B, 9)), (None, Some([])));
    }

    #[test]
    fn a_field_is_written_whole_or_not_at_all() {
        let mut b = [0; 4];
        set(&mut b, 3, &[1, 2]);
        set(&mut b, usize::MAX, &[1]);
        assert_eq!(b, [0; 4]);
        set(&mut b, 2, &[1, 2]);
        assert_eq!(b, [0, 0, 1, 2]);
    }
}
