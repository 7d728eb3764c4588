//! Encoding of values in a message: packed, big-endian except for `f64`.

use crate::schema::{Arity, TypeRef};
use std::fmt;

/// A message ended before all of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message ends before all of its fields")]
pub struct Truncated;

/// Reads a message's bytes.
#[derive(Debug, Clone)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Creates a reader at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the next `n` bytes.
    ///
    /// # Errors
    /// [`Truncated`] if there are fewer.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Truncated> {
        let (head, tail) = self.0.split_at_checked(n).ok_or(Truncated)?;
        self.0 = tail;
        Ok(head)
    }

    /// Returns the next `N` bytes.
    ///
    /// # Errors
    /// [`Truncated`] if there are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (head, tail) = self.0.split_first_chunk().ok_or(Truncated)?;
        self.0 = tail;
        Ok(*head)
    }

    /// Returns the number of bytes left.
    pub fn left(&self) -> usize {
        self.0.len()
    }
}

/// Bytes of framing before a message.
pub const FRAMING: usize = 16;

/// Result of looking for a message in the bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed<'a> {
    /// A message; the next begins [`FRAMING`] bytes and this one's length later.
    Message(&'a [u8]),
    /// An incomplete message.
    Partial,
    /// A message of this length, which exceeds the limit.
    TooLong(usize),
}

/// Finds the first message of `bytes`, of at most `most` bytes.
pub fn framed(bytes: &[u8], most: usize) -> Framed<'_> {
    let Some(length) = bytes.get(8..12).and_then(|bytes| bytes.try_into().ok()) else {
        return Framed::Partial;
    };
    let length = u32::from_be_bytes(length) as usize;
    if length > most {
        return Framed::TooLong(length);
    }
    bytes.get(FRAMING..FRAMING + length).map_or(Framed::Partial, Framed::Message)
}

/// A value of a message's field.
///
/// `#[derive(ApiType)]` implements it for a struct, with consecutive fields; the macros
/// [`api_enum`](crate::api_enum), [`api_alias`](crate::api_alias) and
/// [`api_union`](crate::api_union) make types that implement it.
pub trait Wire: Sized {
    /// Type in descriptions.
    const TYPE: TypeRef;
    /// One value or an array.
    const ARITY: Arity = Arity::One;
    /// Appends the value.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads the value from the front.
    ///
    /// # Errors
    /// [`Truncated`] if it is incomplete.
    fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated>;
}

macro_rules! integers {
    ($($t:ident)*) => {$(
        impl Wire for $t {
            const TYPE: TypeRef = TypeRef::Prim(stringify!($t));
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
            fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
                input.array().map($t::from_be_bytes)
            }
        }
    )*};
}

integers!(u8 i8 u16 i16 u32 i32 u64 i64);

impl Wire for f64 {
    const TYPE: TypeRef = TypeRef::Prim("f64");
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        input.array().map(f64::from_le_bytes)
    }
}

impl Wire for bool {
    const TYPE: TypeRef = TypeRef::Prim("bool");
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        u8::decode(input).map(|byte| byte != 0)
    }
}

impl<T: Wire, const N: usize> Wire for [T; N] {
    const TYPE: TypeRef = T::TYPE;
    const ARITY: Arity = Arity::Fixed(N);
    fn encode(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|element| element.encode(out));
    }
    fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        let elements: Vec<T> = elements(N, input)?;
        elements.try_into().map_err(|_| Truncated)
    }
}

/// A string of variable length, always the last field: a length, then bytes without NUL.
impl Wire for String {
    const TYPE: TypeRef = TypeRef::Prim("string");
    const ARITY: Arity = Arity::Open;
    fn encode(&self, out: &mut Vec<u8>) {
        (self.len() as u32).encode(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        let length = u32::decode(input)? as usize;
        let bytes = input.take(length)?;
        Ok(String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned())
    }
}

/// A string in a field of `N` bytes, padded with at least one NUL.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text<const N: usize>(String);

impl<const N: usize> Text<N> {
    /// Returns the string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> From<&str> for Text<N> {
    /// Truncates a string that is too long.
    fn from(text: &str) -> Self {
        let text = text.split('\0').next().unwrap_or_default();
        let mut end = text.len().min(N.saturating_sub(1));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Self(text[..end].to_owned())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<const N: usize> Wire for Text<N> {
    const TYPE: TypeRef = TypeRef::Prim("string");
    const ARITY: Arity = Arity::Fixed(N);
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
        out.resize(out.len() + N.saturating_sub(self.0.len()), 0);
    }
    fn decode(input: &mut Reader<'_>) -> Result<Self, Truncated> {
        let bytes = input.take(N)?.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Self::from(String::from_utf8_lossy(bytes).as_ref()))
    }
}

/// A type of element counts.
pub trait Count: Wire + Copy {
    /// Converts a count, limited to the maximum of the type.
    fn at_most(n: usize) -> (Self, usize);
}

macro_rules! counts {
    ($($t:ident)*) => {$(
        impl Count for $t {
            fn at_most(n: usize) -> (Self, usize) {
                let n = $t::try_from(n).unwrap_or($t::MAX);
                (n, n as usize)
            }
        }
    )*};
}

counts!(u8 u16 u32);

/// Appends the number of elements, and returns how many must follow.
pub fn count<T: Count>(n: usize, out: &mut Vec<u8>) -> usize {
    let (encoded, n) = T::at_most(n);
    encoded.encode(out);
    n
}

/// Reads `n` elements from the front.
///
/// # Errors
/// [`Truncated`] if there are fewer; a wrong number costs no memory.
pub fn elements<T: Wire>(n: usize, input: &mut Reader<'_>) -> Result<Vec<T>, Truncated> {
    // No element is zero-sized.
    if n > input.left() {
        return Err(Truncated);
    }
    (0..n).map(|_| T::decode(input)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(value: &impl Wire) -> Vec<u8> {
        let mut out = Vec::new();
        value.encode(&mut out);
        out
    }

    #[test]
    fn numbers_are_big_endian_but_floats() {
        assert_eq!(bytes(&0x0102_0304_u32), [1, 2, 3, 4]);
        assert_eq!(bytes(&-2_i16), [0xff, 0xfe]);
        assert_eq!(bytes(&1.0_f64), [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        assert_eq!(bytes(&[true, false]), [1, 0]);
    }

    #[test]
    fn texts_are_padded_or_preceded_by_their_length() {
        assert_eq!(bytes(&Text::<4>::from("abcd")), *b"abc\0");
        assert_eq!(bytes(&Text::<8>::from("a\0b")), *b"a\0\0\0\0\0\0\0");
        assert_eq!(Text::<4>::from("aäö").as_str(), "aä");
        assert_eq!(bytes(&"hi".to_owned()), [0, 0, 0, 2, b'h', b'i']);
        let mut lies = Reader::new(&[0xff, 0xff, 0xff, 0xff, 0]);
        assert_eq!(String::decode(&mut lies), Err(Truncated));
        assert_eq!(elements::<u64>(usize::MAX, &mut Reader::new(&[0; 64])), Err(Truncated));
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(
            n: u64, i: i32, x: f64, yes: bool, array: [u16; 5], open: String, fixed in "[a-z]{0,9}",
        ) {
            let open = open.trim_end_matches('\0').to_owned();
            let fixed = Text::<10>::from(fixed.as_str());
            let mut out = bytes(&n);
            i.encode(&mut out);
            x.encode(&mut out);
            yes.encode(&mut out);
            array.encode(&mut out);
            fixed.encode(&mut out);
            open.encode(&mut out);
            let mut input = Reader::new(&out);
            prop_assert_eq!(u64::decode(&mut input), Ok(n));
            prop_assert_eq!(i32::decode(&mut input), Ok(i));
            prop_assert_eq!(f64::decode(&mut input).map(f64::to_bits), Ok(x.to_bits()));
            prop_assert_eq!(bool::decode(&mut input), Ok(yes));
            prop_assert_eq!(<[u16; 5]>::decode(&mut input), Ok(array));
            prop_assert_eq!(Text::<10>::decode(&mut input), Ok(fixed));
            prop_assert_eq!(String::decode(&mut input), Ok(open));
            prop_assert_eq!(input.left(), 0);
        }
    }
}
