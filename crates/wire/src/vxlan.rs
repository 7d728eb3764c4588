//! VXLAN (RFC 7348): Ethernet in UDP.

use crate::bytes::{be32, header, put, room};
use crate::{Result, WireError};

/// Bytes in the header.
pub const HEADER_LEN: usize = 8;
/// The largest network identifier.
pub const MAX_VNI: u32 = 0xff_ffff;
/// Set if the network identifier is valid.
pub const FLAG_VNI: u8 = 0x08;
const WHAT: &str = "VXLAN header";

/// A VXLAN packet.
#[derive(Clone, Copy, Debug)]
pub struct VxlanView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> VxlanView<'a> {
    /// Reads the header at the start of `data`, a UDP payload.
    ///
    /// # Errors
    /// `Truncated` below 8 bytes; `BadField` unless the VNI flag is set (RFC 7348 section 5).
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let (header, payload) = header::<HEADER_LEN>(data, WHAT)?;
        if header[0] & FLAG_VNI == 0 {
            return Err(WireError::BadField { what: "VXLAN flags", found: header[0].into() });
        }
        Ok(Self { header, payload })
    }

    /// The flags.
    #[inline]
    pub fn flags(&self) -> u8 {
        self.header[0]
    }

    /// The network identifier, 24 bits.
    #[inline]
    pub fn vni(&self) -> u32 {
        be32(self.header, 4) >> 8
    }

    /// The inner Ethernet frame.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Writes a header and returns its length; bits of `vni` above 24 are ignored.
///
/// # Errors
/// `NoRoom` below 8 bytes.
pub fn emit(vni: u32, buf: &mut [u8]) -> Result<usize> {
    let b = room::<HEADER_LEN>(buf, WHAT)?;
    put(b, 0, [FLAG_VNI, 0, 0, 0]);
    put(b, 4, ((vni & MAX_VNI) << 8).to_be_bytes());
    Ok(HEADER_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_vni_flag_must_be_set() {
        assert_eq!(VxlanView::parse(&[8, 0, 0, 0, 0, 0, 42, 0]).unwrap().vni(), 42);
        assert!(VxlanView::parse(&[0, 0, 0, 0, 0, 0, 42, 0]).is_err());
        assert!(VxlanView::parse(&[8, 0, 0, 0, 0, 0, 42]).is_err());
    }

    proptest! {
        #[test]
        fn emitted_headers_parse_back(vni in 0..=MAX_VNI) {
            let mut buf = [0xff; 9];
            prop_assert_eq!(emit(vni, &mut buf), Ok(8));
            let view = VxlanView::parse(&buf).unwrap();
            prop_assert_eq!((view.vni(), view.payload()), (vni, &[0xff][..]));
        }

        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..20)) {
            let _ = VxlanView::parse(&data).map(|v| v.vni());
        }
    }
}
