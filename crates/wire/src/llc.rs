//! IEEE 802.2 LLC and SNAP (RFC 1042): the payload of 802.3 frames, after their length field.

use crate::bytes::header;
use crate::ethernet::EthernetView;
use crate::{Result, WireError};

/// Bytes of destination, source and an unnumbered control field.
pub const HEADER_LEN: usize = 3;
/// Bytes of LLC and SNAP together.
pub const SNAP_LEN: usize = 8;

/// Service access points.
pub mod sap {
    /// Spanning tree BPDUs.
    pub const BPDU: u8 = 0x42;
    /// SNAP: an organization code and a type follow.
    pub const SNAP: u8 = 0xaa;
    /// Value in raw Novell 802.3 frames.
    pub const NOVELL: u8 = 0xff;
    /// IS-IS and the other OSI protocols.
    pub const OSI: u8 = 0xfe;
    /// IP over LLC.
    pub const IP: u8 = 0x06;
}

/// Payload of an LLC frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Spanning tree.
    Bpdu,
    /// IS-IS and its family.
    Osi,
    /// SNAP with organization code and protocol type; organization 0 uses ethertypes.
    Snap {
        /// The organization, in 24 bits.
        oui: u32,
        /// The protocol within it.
        protocol: u16,
    },
    /// Another service access point.
    Other(u8),
}

/// An LLC header inside an 802.3 frame, cut to the frame's length field.
#[derive(Clone, Copy, Debug)]
pub struct LlcView<'a> {
    header: &'a [u8; HEADER_LEN],
    rest: &'a [u8],
}

impl<'a> LlcView<'a> {
    /// Parses the LLC header of a frame whose type field is a length.
    ///
    /// # Errors
    /// `BadField` for an Ethernet II frame, `BadTotalLength` if the length exceeds the available
    /// bytes, `Truncated` if it leaves no room for LLC.
    pub fn of_frame(frame: &EthernetView<'a>) -> Result<Self> {
        let length = usize::from(frame.ethertype());
        if !frame.is_802_3() {
            return Err(WireError::BadField { what: "802.3 length", found: length as u32 });
        }
        let have = frame.payload().len();
        let data = frame.payload().get(..length);
        Self::parse(data.ok_or(WireError::BadTotalLength { what: "802.3 frame", length, have })?)
    }

    /// Reads the LLC header at the start of `data`.
    ///
    /// # Errors
    /// `Truncated` below three bytes.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let (header, rest) = header(data, "LLC header")?;
        Ok(Self { header, rest })
    }

    /// The destination service access point.
    pub fn dsap(&self) -> u8 {
        self.header[0]
    }

    /// The source service access point.
    pub fn ssap(&self) -> u8 {
        self.header[1]
    }

    /// The control field's first byte.
    pub fn control(&self) -> u8 {
        self.header[2]
    }

    /// The kind of payload.
    pub fn payload_kind(&self) -> Payload {
        match (self.dsap(), self.rest.first_chunk::<5>()) {
            (sap::SNAP, Some(&[a, b, c, d, e])) => Payload::Snap {
                oui: u32::from_be_bytes([0, a, b, c]),
                protocol: u16::from_be_bytes([d, e]),
            },
            (sap::BPDU, _) => Payload::Bpdu,
            (sap::OSI, _) => Payload::Osi,
            (other, _) => Payload::Other(other),
        }
    }

    /// The bytes after the LLC header, and after SNAP if there is one.
    pub fn payload(&self) -> &'a [u8] {
        match self.payload_kind() {
            Payload::Snap { .. } => self.rest.get(5..).unwrap_or_default(),
            _ => self.rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_spanning_tree_frame() {
        let mut frame = [0u8; 60];
        frame[..17].copy_from_slice(&[
            0x01, 0x80, 0xc2, 0, 0, 0, 0x5a, 0x9e, 0x34, 0xcc, 0x82, 0xe7, 0, 0x26, 0x42, 0x42, 3,
        ]);
        let llc = LlcView::of_frame(&EthernetView::parse(&frame).unwrap()).unwrap();
        assert_eq!((llc.dsap(), llc.ssap(), llc.control()), (0x42, 0x42, 3));
        assert_eq!(llc.payload_kind(), Payload::Bpdu);
        assert_eq!(llc.payload().len(), 0x26 - 3);
    }

    #[test]
    fn a_snap_frame() {
        let llc = LlcView::parse(&[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0x00, 2, 180]).unwrap();
        assert_eq!(llc.payload_kind(), Payload::Snap { oui: 0x0c, protocol: 0x2000 });
        assert_eq!(llc.payload(), &[2, 180]);
        let cut = LlcView::parse(&[0xaa, 0xaa, 3, 0, 0]).unwrap();
        assert_eq!(cut.payload_kind(), Payload::Other(0xaa));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(llc) = LlcView::parse(&data) {
                prop_assert!(llc.payload().len() <= data.len());
            }
            if let Ok(eth) = EthernetView::parse(&data) {
                let _ = LlcView::of_frame(&eth).map(|l| l.payload_kind());
            }
        }
    }
}
