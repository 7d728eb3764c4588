//! GRE version 0 (RFC 2784) with key and sequence number (RFC 2890).

use crate::bytes::{be16, header};
use crate::{Result, WireError};

/// Bytes in a header without optional fields.
pub const HEADER_LEN: usize = 4;
const CHECKSUM_BIT: u16 = 0x8000;
const ROUTING_BIT: u16 = 0x4000;
const KEY_BIT: u16 = 0x2000;
const SEQUENCE_BIT: u16 = 0x1000;
const WHAT: &str = "GRE header";

/// A GRE packet.
#[derive(Clone, Copy, Debug)]
pub struct GreView<'a> {
    header: &'a [u8; HEADER_LEN],
    fields: &'a [u8],
    payload: &'a [u8],
}

impl<'a> GreView<'a> {
    /// Parses the header at the start of `data`.
    ///
    /// # Errors
    /// `Truncated`; `BadVersion` for the enhanced GRE of PPTP; `BadField` for the source routing of
    /// RFC 1701, which RFC 2784 section 2.3 requires to drop.
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let (header, rest) = header::<HEADER_LEN>(data, WHAT)?;
        let flags = be16(header, 0);
        let version = (flags & 7) as u8;
        if version != 0 {
            return Err(WireError::BadVersion { what: WHAT, found: version, want: 0 });
        }
        if flags & ROUTING_BIT != 0 {
            return Err(WireError::BadField { what: "GRE flags", found: flags.into() });
        }
        let optional = [CHECKSUM_BIT, KEY_BIT, SEQUENCE_BIT];
        let length = optional.iter().filter(|&bit| flags & bit != 0).count() * 4;
        let (need, have) = (HEADER_LEN + length, data.len());
        let parts = rest.split_at_checked(length);
        let (fields, payload) = parts.ok_or(WireError::Truncated { what: WHAT, need, have })?;
        Ok(Self { header, fields, payload })
    }

    /// The ethertype of the inner packet.
    #[inline]
    pub fn protocol(&self) -> u16 {
        be16(self.header, 2)
    }

    /// Bytes in the header with its optional fields.
    #[inline]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.fields.len()
    }

    /// The key, if there is one.
    pub fn key(&self) -> Option<u32> {
        self.optional(KEY_BIT, &[CHECKSUM_BIT])
    }

    /// The sequence number, if there is one.
    pub fn sequence(&self) -> Option<u32> {
        self.optional(SEQUENCE_BIT, &[CHECKSUM_BIT, KEY_BIT])
    }

    /// The checksum over header and payload, if there is one.
    pub fn checksum(&self) -> Option<u16> {
        self.optional(CHECKSUM_BIT, &[]).map(|v| (v >> 16) as u16)
    }

    /// The inner packet.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The header's fields, without its checksum.
    pub fn repr(&self) -> GreRepr {
        GreRepr { protocol: self.protocol(), key: self.key(), sequence: self.sequence() }
    }

    fn optional(&self, bit: u16, in_front: &[u16]) -> Option<u32> {
        let flags = be16(self.header, 0);
        if flags & bit == 0 {
            return None;
        }
        let at = in_front.iter().filter(|&b| flags & b != 0).count() * 4;
        self.fields.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b))
    }
}

/// The fields of a GRE header; a checksum is never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreRepr {
    /// The ethertype of the inner packet.
    pub protocol: u16,
    /// The key, if there is one.
    pub key: Option<u32>,
    /// The sequence number, if there is one.
    pub sequence: Option<u32>,
}

impl GreRepr {
    /// Bytes in the header.
    pub const fn header_len(&self) -> usize {
        HEADER_LEN + 4 * (self.key.is_some() as usize + self.sequence.is_some() as usize)
    }

    /// Writes the header and returns its length.
    ///
    /// # Errors
    /// `NoRoom` below [`header_len`](Self::header_len) bytes.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize> {
        let (need, have) = (self.header_len(), buf.len());
        let b = buf.get_mut(..need).ok_or(WireError::NoRoom { what: WHAT, need, have })?;
        let bit = |present, bit| if present { bit } else { 0 };
        let flags = bit(self.key.is_some(), KEY_BIT) | bit(self.sequence.is_some(), SEQUENCE_BIT);
        b[..2].copy_from_slice(&flags.to_be_bytes());
        b[2..4].copy_from_slice(&self.protocol.to_be_bytes());
        let fields = b[4..].as_chunks_mut::<4>().0.iter_mut();
        for (place, value) in fields.zip(self.key.into_iter().chain(self.sequence)) {
            *place = value.to_be_bytes();
        }
        Ok(need)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn optional_fields_stand_in_order() {
        let data = [0xb0, 0, 8, 0, 0xaa, 0xbb, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0x45];
        let gre = GreView::parse(&data).unwrap();
        assert_eq!((gre.checksum(), gre.key(), gre.sequence()), (Some(0xaabb), Some(7), Some(9)));
        assert_eq!((gre.protocol(), gre.payload()), (0x800, &[0x45][..]));
        assert!(GreView::parse(&data[..15]).is_err());
        assert!(matches!(
            GreView::parse(&[0x30, 0x81, 0x88, 0x0b]),
            Err(WireError::BadVersion { .. })
        ));
        assert!(matches!(GreView::parse(&[0x40, 0, 8, 0]), Err(WireError::BadField { .. })));
    }

    proptest! {
        #[test]
        fn emitted_headers_parse_back(protocol: u16, key: Option<u32>, sequence: Option<u32>) {
            let repr = GreRepr { protocol, key, sequence };
            let mut buf = [0xff; 16];
            let length = repr.emit(&mut buf).unwrap();
            let view = GreView::parse(&buf).unwrap();
            prop_assert_eq!((view.repr(), view.header_len()), (repr, length));
        }

        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..24)) {
            if let Ok(view) = GreView::parse(&data) {
                view.repr();
                prop_assert_eq!(view.header_len() + view.payload().len(), data.len());
            }
        }
    }
}
