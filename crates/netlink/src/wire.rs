//! Netlink messages as they lie in a datagram: headers, attributes, and how to write them.
//!
//! All numbers are in the host's byte order (netlink(7)). Nothing that is read is trusted: each
//! length is checked against what there is.

use std::net::IpAddr;

use thiserror::Error;

/// Bytes of a message header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of the header that generic netlink adds.
pub const GENERIC_BYTES: usize = 4;
/// Bytes of an attribute's header.
pub const ATTRIBUTE_BYTES: usize = 4;

/// The attribute's value consists of attributes.
pub const NESTED: u16 = 0x8000;
/// Flags in an attribute's type; the rest is its number.
const TYPE_FLAGS: u16 = 0xc000;

/// A fault of a message, and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("byte {at}: {fault}")]
pub struct MessageError {
    /// Offset in the datagram, or in the message's payload for its attributes.
    pub at: usize,
    /// The fault.
    pub fault: Fault,
}

/// A fault of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    /// A length that includes less than the header it stands in.
    #[error("length {0} is less than a header's")]
    Short(usize),
    /// A length that leads out of what there is.
    #[error("length {length} where {left} bytes are left")]
    Long {
        /// The claimed length, in bytes.
        length: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// Less than a header is left.
    #[error("{0} bytes are left, less than a header")]
    Cut(usize),
    /// A number of an unusual width.
    #[error("attribute {kind} has {length} bytes: a number has 1, 2, 4 or 8")]
    Width {
        /// The attribute's number.
        kind: u16,
        /// Its bytes.
        length: usize,
    },
    /// A number that is too large for what it means.
    #[error("attribute {kind} is {value}, which is too large")]
    Range {
        /// The attribute's number.
        kind: u16,
        /// Its value.
        value: u64,
    },
    /// Attribute that the message needs.
    #[error("attribute {0} ({1}) is missing")]
    Missing(u16, &'static str),
}

/// The header of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header {
    /// Kind of message; a generic family's number.
    pub kind: u16,
    /// Flags (`NLM_F_…`).
    pub flags: u16,
    /// The sender's count.
    pub sequence: u32,
    /// The sender's port number.
    pub port: u32,
}

/// A message: its header, where its payload begins in the datagram, and that payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a> {
    /// The header.
    pub header: Header,
    /// The bytes that follow the header.
    pub payload: &'a [u8],
}

/// The generic netlink header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Generic {
    /// The command.
    pub command: u8,
    /// The family's version.
    pub version: u8,
}

impl Generic {
    /// Takes the header off a payload.
    ///
    /// # Errors
    /// If the payload is shorter.
    #[inline]
    pub fn split(payload: &[u8]) -> Result<(Generic, &[u8]), MessageError> {
        match payload.split_first_chunk::<GENERIC_BYTES>() {
            Some(([command, version, _, _], rest)) => {
                Ok((Generic { command: *command, version: *version }, rest))
            }
            None => Err(MessageError { at: 0, fault: Fault::Cut(payload.len()) }),
        }
    }
}

/// Iterator over the messages of a datagram; ends after an error.
#[derive(Debug, Clone)]
pub struct Messages<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Messages<'a> {
    /// Returns the messages of `datagram`.
    #[inline]
    #[must_use]
    pub fn new(datagram: &'a [u8]) -> Self {
        Messages { bytes: datagram, at: 0 }
    }

    #[inline]
    fn take(&mut self) -> Result<Raw<'a>, Fault> {
        let left = self.bytes.len();
        let Some((head, _)) = self.bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(Fault::Cut(left));
        };
        let length = word(head, 0) as usize;
        if length < HEADER_BYTES {
            return Err(Fault::Short(length));
        }
        let Some(message) = self.bytes.get(..length) else {
            return Err(Fault::Long { length, left });
        };
        let header = Header {
            kind: half(head, 4),
            flags: half(head, 6),
            sequence: word(head, 8),
            port: word(head, 12),
        };
        let next = padded(length).min(left);
        (self.bytes, self.at) = (&self.bytes[next..], self.at + next);
        Ok(Raw { header, payload: &message[HEADER_BYTES..] })
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Raw<'a>, MessageError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let at = self.at;
        let taken = self.take();
        if taken.is_err() {
            self.bytes = &[];
        }
        Some(taken.map_err(|fault| MessageError { at, fault }))
    }
}

/// An attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its number, without flags.
    pub kind: u16,
    /// Flagged as one that consists of attributes.
    pub nested: bool,
    /// Offset of the attribute.
    pub at: usize,
    /// Its value.
    pub value: &'a [u8],
}

impl<'a> Attribute<'a> {
    fn error(&self, fault: Fault) -> MessageError {
        MessageError { at: self.at, fault }
    }

    /// The value as a number, whatever its width.
    ///
    /// # Errors
    /// If that is no number's.
    #[inline]
    pub fn u64(&self) -> Result<u64, MessageError> {
        match *self.value {
            [a, b, c, d] => Ok(u32::from_ne_bytes([a, b, c, d]).into()),
            [a, b, c, d, e, f, g, h] => Ok(u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
            [a, b] => Ok(u16::from_ne_bytes([a, b]).into()),
            [a] => Ok(a.into()),
            _ => Err(self.error(Fault::Width { kind: self.kind, length: self.value.len() })),
        }
    }

    /// The same, of at most 32 bits.
    ///
    /// # Errors
    /// If it is no number or a larger one.
    #[inline]
    pub fn u32(&self) -> Result<u32, MessageError> {
        let value = self.u64()?;
        u32::try_from(value).map_err(|_| self.error(Fault::Range { kind: self.kind, value }))
    }

    /// The same, of at most 16 bits.
    ///
    /// # Errors
    /// If it is no number or a larger one.
    #[inline]
    pub fn u16(&self) -> Result<u16, MessageError> {
        let value = self.u64()?;
        u16::try_from(value).map_err(|_| self.error(Fault::Range { kind: self.kind, value }))
    }

    /// The value as a string up to its NUL, if there is one.
    #[inline]
    #[must_use]
    pub fn text(&self) -> &'a [u8] {
        until_nul(self.value)
    }

    /// The attributes that the value consists of.
    #[inline]
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes { bytes: self.value, at: self.at + ATTRIBUTE_BYTES }
    }
}

/// An IP address, of either version as its length says.
#[must_use]
pub fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(value).ok()?)),
        16 => Some(IpAddr::from(<[u8; 16]>::try_from(value).ok()?)),
        _ => None,
    }
}

/// Appends an IP address as an attribute.
pub(crate) fn put_address(w: &mut Writer<'_>, kind: u16, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => w.bytes(kind, &v4.octets()),
        IpAddr::V6(v6) => w.bytes(kind, &v6.octets()),
    };
}

/// A string up to its NUL, if there is one.
#[inline]
#[must_use]
pub fn until_nul(value: &[u8]) -> &[u8] {
    value.split(|b| *b == 0).next().unwrap_or_default()
}

/// Iterator over the attributes of a message; ends after an error.
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Attributes<'a> {
    /// Returns the attributes in `payload`, which is behind all headers.
    #[inline]
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Self {
        Attributes { bytes: payload, at: 0 }
    }

    #[inline]
    fn take(&mut self) -> Result<Attribute<'a>, Fault> {
        let left = self.bytes.len();
        let Some((head, _)) = self.bytes.split_first_chunk::<ATTRIBUTE_BYTES>() else {
            return Err(Fault::Cut(left));
        };
        let (length, kind) = (usize::from(half(head, 0)), half(head, 2));
        if length < ATTRIBUTE_BYTES {
            return Err(Fault::Short(length));
        }
        let Some(whole) = self.bytes.get(..length) else {
            return Err(Fault::Long { length, left });
        };
        let attribute = Attribute {
            kind: kind & !TYPE_FLAGS,
            nested: kind & NESTED != 0,
            at: self.at,
            value: &whole[ATTRIBUTE_BYTES..],
        };
        let next = padded(length).min(left);
        (self.bytes, self.at) = (&self.bytes[next..], self.at + next);
        Ok(attribute)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, MessageError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let at = self.at;
        let taken = self.take();
        if taken.is_err() {
            self.bytes = &[];
        }
        Some(taken.map_err(|fault| MessageError { at, fault }))
    }
}

/// Encodes a message of a kind, with bytes before its attributes, a multiple of four.
#[must_use]
pub fn message(kind: u16, payload: &[u8], fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut message = Vec::new();
    let header = Header { kind, ..Header::default() };
    let mut w = Writer::with_payload(&mut message, header, payload);
    fill(&mut w);
    w.finish();
    message
}

/// Encodes a message without its header, as it is read.
#[must_use]
pub fn payload(head: &[u8], fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    message(0, head, fill).split_off(HEADER_BYTES)
}

/// Appends one message to a datagram.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
}

impl<'o> Writer<'o> {
    /// Begins a message.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>, header: Header) -> Self {
        let start = out.len();
        let mut head = [0; HEADER_BYTES];
        head[4..6].copy_from_slice(&header.kind.to_ne_bytes());
        head[6..8].copy_from_slice(&header.flags.to_ne_bytes());
        head[8..12].copy_from_slice(&header.sequence.to_ne_bytes());
        head[12..].copy_from_slice(&header.port.to_ne_bytes());
        out.extend_from_slice(&head);
        Writer { out, start }
    }

    /// Begins a message with bytes before its attributes, a multiple of four.
    pub fn with_payload(out: &'o mut Vec<u8>, header: Header, payload: &[u8]) -> Self {
        let writer = Writer::new(out, header);
        writer.out.extend_from_slice(payload);
        writer
    }

    /// Begins a message of a generic family.
    #[inline]
    pub fn generic(out: &'o mut Vec<u8>, header: Header, generic: Generic) -> Self {
        let writer = Writer::new(out, header);
        writer.out.extend_from_slice(&[generic.command, generic.version, 0, 0]);
        writer
    }

    #[inline]
    fn head(&mut self, kind: u16, length: usize) {
        // Callers' values are headers of packets and names, cut to what fits.
        let whole = (ATTRIBUTE_BYTES + length) as u16;
        let [a, b] = whole.to_ne_bytes();
        let [c, d] = kind.to_ne_bytes();
        self.out.extend_from_slice(&[a, b, c, d]);
    }

    /// A byte.
    #[inline]
    pub fn u8(&mut self, kind: u16, value: u8) -> &mut Self {
        self.bytes(kind, &[value])
    }

    /// A number of 16 bits.
    #[inline]
    pub fn u16(&mut self, kind: u16, value: u16) -> &mut Self {
        self.head(kind, 2);
        let [a, b] = value.to_ne_bytes();
        self.out.extend_from_slice(&[a, b, 0, 0]);
        self
    }

    /// A number of 32 bits.
    #[inline]
    pub fn u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.head(kind, 4);
        self.out.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// A number of 64 bits.
    #[inline]
    pub fn u64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.head(kind, 8);
        self.out.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// Appends bytes, padded. An attribute holds 65531 bytes; the rest is cut.
    #[inline]
    pub fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let value = &value[..value.len().min(usize::from(u16::MAX) - ATTRIBUTE_BYTES)];
        self.head(kind, value.len());
        self.out.extend_from_slice(value);
        let padding = padded(value.len()) - value.len();
        self.out.extend_from_slice(&[0; 3][..padding]);
        self
    }

    /// A string with the NUL that the kernel wants.
    pub fn text(&mut self, kind: u16, value: impl AsRef<[u8]>) -> &mut Self {
        let most = usize::from(u16::MAX) - ATTRIBUTE_BYTES - 1;
        let value = value.as_ref();
        let value = &value[..value.len().min(most)];
        self.head(kind, value.len() + 1);
        self.out.extend_from_slice(value);
        let length = value.len() + 1;
        self.out.extend_from_slice(&[0; 4][..1 + padded(length) - length]);
        self
    }

    /// An attribute without a value, which says something by being there.
    pub fn flag(&mut self, kind: u16) -> &mut Self {
        self.head(kind, 0);
        self
    }

    /// An attribute that consists of those that `fill` writes.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.out.len();
        self.head(kind | NESTED, 0);
        fill(self);
        let length = self.out.len() - start;
        self.out[start..start + 2].copy_from_slice(&(length as u16).to_ne_bytes());
        self
    }

    /// Ends the message.
    #[inline]
    pub fn finish(self) {
        let length = self.out.len() - self.start;
        let word = &mut self.out[self.start..self.start + 4];
        word.copy_from_slice(&(length as u32).to_ne_bytes());
    }
}

#[inline]
const fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[inline]
fn word(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
fn half<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Put {
        U8(u8),
        U16(u16),
        U32(u32),
        U64(u64),
        Bytes(Vec<u8>),
        Text(Vec<u8>),
        Flag,
        Nest(Vec<(u16, u32)>),
    }

    fn put() -> impl Strategy<Value = Put> {
        prop_oneof![
            any::<u8>().prop_map(Put::U8),
            any::<u16>().prop_map(Put::U16),
            any::<u32>().prop_map(Put::U32),
            any::<u64>().prop_map(Put::U64),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Put::Bytes),
            prop::collection::vec(1u8..=255, 0..70).prop_map(Put::Text),
            Just(Put::Flag),
            prop::collection::vec((0u16..0x4000, any::<u32>()), 0..5).prop_map(Put::Nest),
        ]
    }

    fn write(w: &mut Writer<'_>, kind: u16, put: &Put) {
        match put {
            Put::U8(n) => w.u8(kind, *n),
            Put::U16(n) => w.u16(kind, *n),
            Put::U32(n) => w.u32(kind, *n),
            Put::U64(n) => w.u64(kind, *n),
            Put::Bytes(b) => w.bytes(kind, b),
            Put::Text(b) => w.text(kind, b),
            Put::Flag => w.flag(kind),
            Put::Nest(list) => w.nest(kind, |w| {
                for (kind, n) in list {
                    w.u32(*kind, *n);
                }
            }),
        };
    }

    fn check(a: &Attribute<'_>, kind: u16, put: &Put) {
        assert_eq!((a.kind, a.nested), (kind, matches!(put, Put::Nest(_))));
        match put {
            Put::U8(n) => assert_eq!(a.u64(), Ok(u64::from(*n))),
            Put::U16(n) => assert_eq!(a.u16(), Ok(*n)),
            Put::U32(n) => assert_eq!(a.u32(), Ok(*n)),
            Put::U64(n) => assert_eq!(a.u64(), Ok(*n)),
            Put::Bytes(b) => assert_eq!(a.value, b),
            Put::Text(b) => assert_eq!(a.text(), b),
            Put::Flag => assert_eq!(a.value, b""),
            Put::Nest(list) => {
                let read = a.attributes().map(|a| a.unwrap());
                let read: Vec<_> = read.map(|a| (a.kind, a.u32().unwrap())).collect();
                assert_eq!(&read, list);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            messages in prop::collection::vec(
                prop::collection::vec((0u16..0x4000, put()), 0..8), 0..6),
        ) {
            let mut out = Vec::new();
            for (i, attributes) in messages.iter().enumerate() {
                let header = Header { kind: 30, flags: 0, sequence: i as u32, port: 9 };
                let generic = Generic { command: 5, version: 1 };
                let mut w = Writer::generic(&mut out, header, generic);
                attributes.iter().for_each(|(kind, put)| write(&mut w, *kind, put));
                w.finish();
            }
            let read: Vec<_> = Messages::new(&out).map(|m| m.unwrap()).collect();
            prop_assert_eq!(read.len(), messages.len());
            for (i, (raw, attributes)) in read.iter().zip(&messages).enumerate() {
                prop_assert_eq!(raw.header.sequence, i as u32);
                let (generic, rest) = Generic::split(raw.payload).unwrap();
                prop_assert_eq!(generic, Generic { command: 5, version: 1 });
                let read: Vec<_> = Attributes::new(rest).map(|a| a.unwrap()).collect();
                prop_assert_eq!(read.len(), attributes.len());
                for (a, (kind, put)) in read.iter().zip(attributes) {
                    check(a, *kind, put);
                }
            }
        }

        #[test]
        fn any_bytes_are_read_within_bounds(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for raw in Messages::new(&bytes).flatten() {
                prop_assert!(Attributes::new(raw.payload).count() <= raw.payload.len() / 4 + 1);
            }
            prop_assert!(Messages::new(&bytes).count() <= bytes.len() / HEADER_BYTES + 1);
            prop_assert!(Attributes::new(&bytes).count() <= bytes.len() / ATTRIBUTE_BYTES + 1);
        }
    }

    #[test]
    fn faults_say_where() {
        let fault = |bytes: &[u8]| Attributes::new(bytes).find_map(Result::err).unwrap();
        let long = fault(&[4, 0, 1, 0, 9, 0, 2, 0]);
        assert_eq!(long.to_string(), "byte 4: length 9 where 4 bytes are left");
        assert_eq!(fault(&[3, 0, 1, 0]).fault, Fault::Short(3));
        assert_eq!(fault(&[4, 0, 1]).fault, Fault::Cut(3));
        let odd = Attribute { kind: 7, nested: false, at: 8, value: &[0; 3] };
        let said = odd.u32().unwrap_err().to_string();
        assert_eq!(said, "byte 8: attribute 7 has 3 bytes: a number has 1, 2, 4 or 8");
        assert_eq!(
            Messages::new(&[1; 15]).next(),
            Some(Err(MessageError { at: 0, fault: Fault::Cut(15) }))
        );
    }
}
