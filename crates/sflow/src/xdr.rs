//! Bounds-checked XDR (RFC 4506), as far as sFlow v5 needs it.
//!
//! Integers are big-endian, everything is aligned to four bytes, and opaque data carries its length
//! in front and zero padding behind. A [`Reader`] keeps offsets relative to the whole datagram, so
//! that an error in a nested record still says where in the datagram it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// The fault of the bytes, without the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    /// The datagram is of another sFlow version.
    #[error("sFlow version is {0}, but only version 5 is decoded")]
    Version(u32),
    /// Something ends before it should.
    #[error("{what} needs {needed} bytes, but {available} are left")]
    Truncated {
        /// The field or structure that was being read.
        what: &'static str,
        /// Bytes it needs.
        needed: usize,
        /// Bytes there are.
        available: usize,
    },
    /// A list claims more items than its record can hold.
    #[error("{what} announces {count} items, but there is room for at most {room}")]
    Count {
        /// The list that was being read.
        what: &'static str,
        /// Items announced.
        count: u32,
        /// Items that the remaining bytes could hold.
        room: usize,
    },
    /// An address is neither IPv4 nor IPv6.
    #[error("{what} has address type {found}, expected 0 (unknown), 1 (IPv4) or 2 (IPv6)")]
    AddressType {
        /// The address that was being read.
        what: &'static str,
        /// The type found.
        found: u32,
    },
    /// A named value is of a type that is not defined.
    #[error("value type is {found}, expected 0 to {most}")]
    ValueType {
        /// The type found.
        found: u32,
        /// The last one defined.
        most: u32,
    },
    /// Bytes follow the last announced sample.
    #[error("{0} bytes follow the last announced sample, expected none")]
    Trailing(usize),
}

/// A fault with its place in the datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("byte {offset}: {fault}")]
pub struct DecodeError {
    /// Offset from the first byte of the datagram.
    pub offset: usize,
    /// The fault.
    pub fault: Fault,
}

/// A cursor over a part of a datagram.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Offset of `rest` in the datagram.
    pos: usize,
    /// Some agents pad an address of unknown type to four bytes, the standard has none.
    pad_unknown_address: bool,
    unknown_addresses: usize,
}

impl<'a> Reader<'a> {
    /// Reads all of `data`; its first byte has offset 0.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Reader { rest: data, pos: 0, pad_unknown_address: false, unknown_addresses: 0 }
    }

    /// Makes addresses of unknown type four bytes long instead of empty.
    pub(crate) fn pad_unknown_address(mut self) -> Self {
        self.pad_unknown_address = true;
        self
    }

    /// Returns the number of addresses of unknown type that were read.
    pub(crate) fn unknown_addresses(&self) -> usize {
        self.unknown_addresses
    }

    /// Offset of the next byte, from the start of the datagram.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.pos
    }

    /// Bytes left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes left, without consuming them.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// An error at the present place.
    pub(crate) fn fault(&self, fault: Fault) -> DecodeError {
        DecodeError { offset: self.pos, fault }
    }

    /// Takes `n` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn bytes(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let Some((bytes, rest)) = self.rest.split_at_checked(n) else {
            return Err(self.truncated(n, what));
        };
        (self.rest, self.pos) = (rest, self.pos + n);
        Ok(bytes)
    }

    #[cold]
    fn truncated(&self, needed: usize, what: &'static str) -> DecodeError {
        self.fault(Fault::Truncated { what, needed, available: self.remaining() })
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let Some((bytes, rest)) = self.rest.split_first_chunk() else {
            return Err(self.truncated(N, what));
        };
        (self.rest, self.pos) = (rest, self.pos + N);
        Ok(*bytes)
    }

    /// Takes an unsigned 32-bit integer.
    ///
    /// # Errors
    /// When fewer than four bytes are left.
    #[inline]
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array(what)?))
    }

    /// Takes an unsigned 64-bit integer (hyper).
    ///
    /// # Errors
    /// When fewer than eight bytes are left.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array(what)?))
    }

    /// Takes `n` bytes and the padding to the next multiple of four (RFC 4506 §4.9). Padding that
    /// the enclosing structure cuts off is not missed.
    ///
    /// # Errors
    /// When fewer than `n` bytes are left.
    pub fn padded(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let bytes = self.bytes(n, what)?;
        let padding = (n.wrapping_neg() & 3).min(self.remaining());
        (self.rest, self.pos) = (&self.rest[padding..], self.pos + padding);
        Ok(bytes)
    }

    /// Takes a length and that many bytes with padding (RFC 4506 §4.10).
    ///
    /// # Errors
    /// When fewer bytes are left than announced.
    pub fn opaque(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let n = self.u32(what)? as usize;
        self.padded(n, what)
    }

    /// Takes the number of items of a list whose items are at least `item_bytes` long.
    ///
    /// # Errors
    /// When the remaining bytes cannot hold that many.
    pub fn count(&mut self, item_bytes: usize, what: &'static str) -> Result<u32, DecodeError> {
        let count = self.u32(what)?;
        let room = self.remaining() / item_bytes;
        if count as usize > room {
            return Err(self.fault(Fault::Count { what, count, room }));
        }
        Ok(count)
    }

    /// Takes an address with its type in front; `None` for the unknown type 0.
    ///
    /// # Errors
    /// When it is cut short or of another type.
    pub fn address(&mut self, what: &'static str) -> Result<Option<IpAddr>, DecodeError> {
        match self.u32(what)? {
            0 => {
                self.unknown_addresses += 1;
                if self.pad_unknown_address {
                    self.bytes(4, what)?;
                }
                Ok(None)
            }
            1 => Ok(Some(self.ipv4(what)?.into())),
            2 => Ok(Some(self.ipv6(what)?.into())),
            found => {
                Err(DecodeError { offset: self.pos - 4, fault: Fault::AddressType { what, found } })
            }
        }
    }

    /// Takes a bare IPv4 address.
    ///
    /// # Errors
    /// When fewer than four bytes are left.
    pub fn ipv4(&mut self, what: &'static str) -> Result<Ipv4Addr, DecodeError> {
        Ok(Ipv4Addr::from(self.array::<4>(what)?))
    }

    /// Takes a bare IPv6 address.
    ///
    /// # Errors
    /// When fewer than sixteen bytes are left.
    pub fn ipv6(&mut self, what: &'static str) -> Result<Ipv6Addr, DecodeError> {
        Ok(Ipv6Addr::from(self.array::<16>(what)?))
    }

    /// Takes a MAC address, which XDR pads to eight bytes.
    ///
    /// # Errors
    /// When fewer than six bytes are left.
    pub fn mac(&mut self, what: &'static str) -> Result<[u8; 6], DecodeError> {
        let mut mac = [0; 6];
        mac.copy_from_slice(self.padded(6, what)?);
        Ok(mac)
    }

    /// Takes `n` bytes (and their padding) as a reader of their own.
    ///
    /// # Errors
    /// When fewer than `n` bytes are left.
    pub fn sub(&mut self, n: usize, what: &'static str) -> Result<Reader<'a>, DecodeError> {
        let start = self.pos;
        let rest = self.padded(n, what)?;
        let pad_unknown_address = self.pad_unknown_address;
        Ok(Reader { rest, pos: start, pad_unknown_address, unknown_addresses: 0 })
    }
}

/// Appends XDR to a buffer that its owner keeps, so that a warm buffer is never reallocated.
#[derive(Debug)]
pub struct Writer<'b> {
    buf: &'b mut Vec<u8>,
}

/// A length word that is filled in when what it measures has been written.
#[derive(Debug)]
#[must_use = "the length stays zero until `end` is called"]
pub struct Mark(usize);

impl<'b> Writer<'b> {
    /// Appends to `buf`.
    pub fn new(buf: &'b mut Vec<u8>) -> Self {
        Writer { buf }
    }

    /// Appends an unsigned 32-bit integer.
    pub fn u32(&mut self, value: u32) {
        self.buf.extend_from_slice(&value.to_be_bytes());
    }

    /// Appends an unsigned 64-bit integer.
    pub fn u64(&mut self, value: u64) {
        self.buf.extend_from_slice(&value.to_be_bytes());
    }

    /// Appends bytes and zero padding to the next multiple of four.
    pub fn padded(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
        self.buf.extend_from_slice(&[0; 3][..bytes.len().wrapping_neg() & 3]);
    }

    /// Appends a length and that many bytes with padding.
    pub fn opaque(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.padded(bytes);
    }

    /// Appends an address with its type in front; `None` is the unknown type without bytes.
    pub fn address(&mut self, address: Option<IpAddr>) {
        match address {
            None => self.u32(0),
            Some(IpAddr::V4(v4)) => {
                self.u32(1);
                self.padded(&v4.octets());
            }
            Some(IpAddr::V6(v6)) => {
                self.u32(2);
                self.padded(&v6.octets());
            }
        }
    }

    /// Appends a length word, to be filled in by [`Writer::end`].
    pub fn begin(&mut self) -> Mark {
        self.u32(0);
        Mark(self.buf.len())
    }

    /// Fills in the length of what was written since [`Writer::begin`].
    pub fn end(&mut self, mark: Mark) {
        let length = (self.buf.len() - mark.0) as u32;
        self.buf[mark.0 - 4..mark.0].copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opaque_is_padded_and_read_back() {
        for n in 0..9_usize {
            let bytes = vec![7; n];
            let mut buf = Vec::new();
            let mut w = Writer::new(&mut buf);
            w.opaque(&bytes);
            w.u64(0x0102_0304_0506_0708);
            assert_eq!(buf.len() % 4, 0);
            let mut r = Reader::new(&buf);
            assert_eq!(r.opaque("test").unwrap(), bytes);
            assert_eq!(r.u64("test").unwrap(), 0x0102_0304_0506_0708);
            assert_eq!(r.remaining(), 0);
        }
    }

    #[test]
    fn errors_name_place_and_need() {
        let mut r = Reader::new(&[0, 0, 0, 9, 1, 2]);
        let error = r.opaque("ifName").unwrap_err();
        assert_eq!(error.to_string(), "byte 4: ifName needs 9 bytes, but 2 are left");
        let mut r = Reader::new(&[0, 0, 0, 3]);
        let error = r.address("agent address").unwrap_err();
        assert_eq!(
            error.to_string(),
            "byte 0: agent address has address type 3, expected 0 (unknown), 1 (IPv4) or 2 (IPv6)"
        );
    }

    #[test]
    fn lists_cannot_claim_more_than_there_is() {
        let mut r = Reader::new(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1]);
        assert!(matches!(r.count(4, "stack").unwrap_err().fault, Fault::Count { room: 1, .. }));
    }

    #[test]
    fn lengths_are_filled_in() {
        let mut buf = Vec::new();
        let mut w = Writer::new(&mut buf);
        let mark = w.begin();
        w.u32(5);
        w.address(Some(Ipv6Addr::LOCALHOST.into()));
        w.end(mark);
        assert_eq!(buf[..4], [0, 0, 0, 24]);
    }

    #[test]
    fn sub_reader_keeps_offsets() {
        let data = [0_u8; 12];
        let mut r = Reader::new(&data);
        r.u32("x").unwrap();
        let mut s = r.sub(3, "record").unwrap();
        assert_eq!((s.offset(), s.remaining()), (4, 3));
        assert_eq!(s.u32("y").unwrap_err().offset, 4);
        assert_eq!(r.offset(), 8);
    }
}
