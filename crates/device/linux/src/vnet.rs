//! The header that describes a packet's pending offload work.

use thalweg_wire::gso::MAX_SEGMENTS;

/// Work left to the next hop: the checksum of a packet, and its segmentation (`struct
/// virtio_net_hdr`, virtio 1.2 section 5.1.6).
///
/// Offsets count from the start of the Ethernet header. The all-zero value is
/// that of a finished packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VnetHdr {
    /// [`VnetHdr::NEEDS_CSUM`], [`VnetHdr::DATA_VALID`].
    pub flags: u8,
    /// `GSO_*`, perhaps with [`VnetHdr::GSO_ECN`] added.
    pub gso_type: u8,
    /// Length of the Ethernet, IP and TCP or UDP headers in bytes: a hint.
    pub hdr_len: u16,
    /// Payload of each segment in bytes.
    pub gso_size: u16,
    /// Start of the data that the checksum covers.
    pub csum_start: u16,
    /// Offset of the checksum from `csum_start`.
    pub csum_offset: u16,
}

/// Reason why a [`VnetHdr`] does not match its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadOffload {
    /// The checksum would lie outside of the packet.
    #[error("the checksum lies at byte {at}, beyond the {len} bytes of the packet")]
    Checksum {
        /// Offset of the checksum.
        at: usize,
        /// Length of the packet.
        len: usize,
    },
    /// The segmentation type is unknown, or has no segment size.
    #[error("segmentation type {kind} with segments of {size} bytes is not one that Linux knows")]
    Segmentation {
        /// The type.
        kind: u8,
        /// The segment size.
        size: u16,
    },
    /// The segments are too small.
    #[error("{len} bytes in segments of {size} are more than {MAX_SEGMENTS} packets")]
    Segments {
        /// Length of the packet.
        len: usize,
        /// The segment size.
        size: u16,
    },
}

impl VnetHdr {
    /// Bytes in a ring.
    pub const LEN: usize = 10;
    /// Flag: the checksum is that of the pseudo header and must be completed.
    pub const NEEDS_CSUM: u8 = 1;
    /// Flag: the device has checked the checksum.
    pub const DATA_VALID: u8 = 2;
    /// No segmentation.
    pub const GSO_NONE: u8 = 0;
    /// TCP over IPv4.
    pub const GSO_TCPV4: u8 = 1;
    /// UDP fragmentation, which current kernels only accept.
    pub const GSO_UDP: u8 = 3;
    /// TCP over IPv6.
    pub const GSO_TCPV6: u8 = 4;
    /// UDP datagrams of equal size.
    pub const GSO_UDP_L4: u8 = 5;
    /// Added to a TCP type: the packet has ECN's CWR bit set.
    pub const GSO_ECN: u8 = 0x80;

    /// Reads a header from the start of `bytes`.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<{ Self::LEN }>()?;
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Some(Self {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        })
    }

    /// The header in ring format: in the byte order of this machine.
    #[inline]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let [h0, h1] = self.hdr_len.to_ne_bytes();
        let [g0, g1] = self.gso_size.to_ne_bytes();
        let [s0, s1] = self.csum_start.to_ne_bytes();
        let [o0, o1] = self.csum_offset.to_ne_bytes();
        [self.flags, self.gso_type, h0, h1, g0, g1, s0, s1, o0, o1]
    }

    /// Returns true if the checksum is still to be completed.
    #[inline]
    pub fn needs_csum(&self) -> bool {
        self.flags & Self::NEEDS_CSUM != 0
    }

    /// Returns true if the packet is still to be segmented.
    #[inline]
    pub fn is_gso(&self) -> bool {
        self.gso_type != Self::GSO_NONE
    }

    /// The header after `by` bytes were put in (or, if negative, taken out)
    /// between the Ethernet addresses and the checksummed data: a VLAN tag is 4.
    #[must_use]
    #[inline]
    pub fn shifted(mut self, by: i16) -> Self {
        if self.needs_csum() {
            self.csum_start = self.csum_start.saturating_add_signed(by);
        }
        if self.hdr_len != 0 {
            self.hdr_len = self.hdr_len.saturating_add_signed(by);
        }
        self
    }

    /// Returns true if a packet of `len` bytes would be cut into more segments than is accepted of
    /// one packet: the sender chooses their size.
    #[inline]
    pub fn has_too_many_segments(&self, len: usize) -> bool {
        self.is_gso() && len > usize::from(self.gso_size.max(1)) * MAX_SEGMENTS
    }

    /// Checks the header against a packet of `len` bytes by the kernel's rules, and the number of
    /// segments.
    #[inline]
    pub fn check(&self, len: usize) -> Result<(), BadOffload> {
        if self.needs_csum() {
            let at = usize::from(self.csum_start) + usize::from(self.csum_offset);
            if at + 2 > len {
                return Err(BadOffload::Checksum { at, len });
            }
        }
        let known = match self.gso_type & !Self::GSO_ECN {
            Self::GSO_NONE => self.gso_type == Self::GSO_NONE,
            Self::GSO_TCPV4 | Self::GSO_TCPV6 | Self::GSO_UDP | Self::GSO_UDP_L4 => {
                self.gso_size != 0
            }
            _ => false,
        };
        if !known {
            return Err(BadOffload::Segmentation { kind: self.gso_type, size: self.gso_size });
        }
        if self.has_too_many_segments(len) {
            return Err(BadOffload::Segments { len, size: self.gso_size });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_round_trip(bytes: [u8; VnetHdr::LEN]) {
            prop_assert_eq!(VnetHdr::parse(&bytes).unwrap().to_bytes(), bytes);
        }

        #[test]
        fn arbitrary_headers_are_checked(bytes: [u8; VnetHdr::LEN], len in 0usize..70_000) {
            let header = VnetHdr::parse(&bytes).unwrap();
            if header.check(len).is_ok() && header.needs_csum() {
                prop_assert!(
                    usize::from(header.csum_start) + usize::from(header.csum_offset) + 2 <= len
                );
            }
        }
    }

    #[test]
    fn tag_shifts_offsets_that_mean_something() {
        let header = VnetHdr {
            flags: VnetHdr::NEEDS_CSUM,
            hdr_len: 66,
            csum_start: 34,
            csum_offset: 16,
            ..VnetHdr::default()
        };
        let tagged = header.shifted(4);
        assert_eq!((tagged.csum_start, tagged.csum_offset, tagged.hdr_len), (38, 16, 70));
        assert_eq!(tagged.shifted(-4), header);
        assert_eq!(VnetHdr::default().shifted(4), VnetHdr::default());
    }

    #[test]
    fn refuses_what_the_kernel_refuses() {
        assert_eq!(VnetHdr::default().check(0), Ok(()));
        let ecn_alone = VnetHdr { gso_type: VnetHdr::GSO_ECN, ..VnetHdr::default() };
        assert!(ecn_alone.check(100).is_err());
        let sizeless = VnetHdr { gso_type: VnetHdr::GSO_TCPV4, ..VnetHdr::default() };
        assert!(sizeless.check(100).is_err());
        // One segment per byte.
        let tiny = VnetHdr { gso_size: 1, ..sizeless };
        assert_eq!(tiny.check(65_000), Err(BadOffload::Segments { len: 65_000, size: 1 }));
        assert!(tiny.has_too_many_segments(65_000) && tiny.check(MAX_SEGMENTS).is_ok());
        assert!(!VnetHdr { gso_size: 32, ..tiny }.has_too_many_segments(65_535));
        assert!(!VnetHdr::default().has_too_many_segments(65_535));
        assert!(VnetHdr::parse(&[0; 9]).is_none());
    }
}
