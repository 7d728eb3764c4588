//! UDP (RFC 768).

use core::net::Ipv4Addr;

use crate::bytes::{be16, header, header_mut, put, room};
use crate::checksum::{self, Checksum};
use crate::{Result, WireError};

/// Bytes in the header.
pub const HEADER_LEN: usize = 8;
/// Offset of the checksum in the header.
pub const CHECKSUM_OFFSET: usize = 6;

/// Well-known ports.
pub mod port {
    /// VXLAN.
    pub const VXLAN: u16 = 4789;
    /// sFlow.
    pub const SFLOW: u16 = 6343;
}

const SRC_PORT: usize = 0;
const DST_PORT: usize = 2;
const LENGTH: usize = 4;
const WHAT: &str = "UDP header";

/// A UDP datagram.
#[derive(Clone, Copy, Debug)]
pub struct UdpView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> UdpView<'a> {
    /// Parses the datagram at the start of `data`; the payload is cut to the length field.
    ///
    /// # Errors
    /// `Truncated` below 8 bytes; `BadTotalLength` if the length field is below 8 or exceeds the
    /// available bytes.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let view = Self::parse_prefix(data)?;
        let (length, have) = (usize::from(view.length()), data.len());
        if length < HEADER_LEN || length > have {
            return Err(WireError::BadTotalLength { what: WHAT, length, have });
        }
        Ok(view)
    }

    /// Parses a header whose datagram may be truncated after it.
    ///
    /// # Errors
    /// `Truncated` below 8 bytes.
    #[inline]
    pub fn parse_prefix(data: &'a [u8]) -> Result<Self> {
        let (header, rest) = header::<HEADER_LEN>(data, WHAT)?;
        let length = usize::from(be16(header, LENGTH)).saturating_sub(HEADER_LEN);
        Ok(Self { header, payload: rest.get(..length).unwrap_or(rest) })
    }

    /// The source port.
    #[inline]
    pub fn src_port(&self) -> u16 {
        be16(self.header, SRC_PORT)
    }

    /// The destination port.
    #[inline]
    pub fn dst_port(&self) -> u16 {
        be16(self.header, DST_PORT)
    }

    /// Bytes in header and payload.
    #[inline]
    pub fn length(&self) -> u16 {
        be16(self.header, LENGTH)
    }

    /// The checksum field; 0 means that the sender did not compute one.
    #[inline]
    pub fn checksum(&self) -> u16 {
        be16(self.header, CHECKSUM_OFFSET)
    }

    /// The bytes after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// True if the datagram is intact. `pseudo` is the sum of its pseudo-header. An absent
    /// checksum passes, which is right for IPv4 only (RFC 8200 section 8.1).
    pub fn checksum_ok(&self, pseudo: Checksum) -> bool {
        let mut sum = pseudo;
        sum.add(self.header);
        sum.add(self.payload);
        self.checksum() == 0 || sum.is_valid()
    }

    /// The header's fields.
    pub fn repr(&self) -> UdpRepr {
        let payload_len = self.length().saturating_sub(HEADER_LEN as u16);
        UdpRepr { src_port: self.src_port(), dst_port: self.dst_port(), payload_len }
    }
}

/// The fields of a UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpRepr {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Bytes after the header.
    pub payload_len: u16,
}

impl UdpRepr {
    /// Writes the header without a checksum (see [`fill_checksum`]) and returns its length.
    ///
    /// # Errors
    /// `NoRoom` below 8 bytes; `BadTotalLength` for a payload that UDP cannot carry.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize> {
        let length = usize::from(self.payload_len) + HEADER_LEN;
        let Ok(length) = u16::try_from(length) else {
            return Err(WireError::BadTotalLength { what: WHAT, length, have: 0xffff });
        };
        let b = room::<HEADER_LEN>(buf, WHAT)?;
        put(b, SRC_PORT, self.src_port.to_be_bytes());
        put(b, DST_PORT, self.dst_port.to_be_bytes());
        put(b, LENGTH, length.to_be_bytes());
        put(b, CHECKSUM_OFFSET, [0, 0]);
        Ok(HEADER_LEN)
    }
}

/// Computes and writes the checksum of a datagram, header and payload in one slice.
///
/// # Errors
/// `Truncated` below 8 bytes.
pub fn fill_checksum(pseudo: Checksum, datagram: &mut [u8]) -> Result<u16> {
    let (h, payload) = header_mut::<HEADER_LEN>(datagram, WHAT)?;
    put(h, CHECKSUM_OFFSET, [0, 0]);
    let mut sum = pseudo;
    sum.add(h);
    sum.add(payload);
    let value = sum.finish_udp();
    put(h, CHECKSUM_OFFSET, value.to_be_bytes());
    Ok(value)
}

/// A header for changes in place. Each setter updates the checksum (RFC 1624), and leaves an absent
/// one absent.
#[derive(Debug)]
pub struct UdpMut<'a> {
    header: &'a mut [u8; HEADER_LEN],
}

impl<'a> UdpMut<'a> {
    /// Takes the header at the start of `data`.
    ///
    /// # Errors
    /// `Truncated` below 8 bytes.
    #[inline]
    pub fn parse(data: &'a mut [u8]) -> Result<Self> {
        Ok(Self { header: header_mut(data, WHAT)?.0 })
    }

    /// Sets the source port.
    #[inline]
    pub fn set_src_port(&mut self, port: u16) {
        self.set_u16(SRC_PORT, port);
    }

    /// Sets the destination port.
    #[inline]
    pub fn set_dst_port(&mut self, port: u16) {
        self.set_u16(DST_PORT, port);
    }

    /// Updates the checksum after an address change in the pseudo-header.
    #[inline]
    pub fn address_changed(&mut self, old: Ipv4Addr, new: Ipv4Addr) {
        let before = be16(self.header, CHECKSUM_OFFSET);
        let sum = checksum::update_udp_u32(before, old.to_bits(), new.to_bits());
        put(self.header, CHECKSUM_OFFSET, sum.to_be_bytes());
    }

    #[inline]
    fn set_u16(&mut self, at: usize, new: u16) {
        let before = be16(self.header, CHECKSUM_OFFSET);
        let sum = checksum::update_udp_u16(before, be16(self.header, at), new);
        put(self.header, at, new.to_be_bytes());
        put(self.header, CHECKSUM_OFFSET, sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    #[test]
    fn a_dns_query_header() {
        let data = [0xc3, 0x50, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4, 0xee, 0xee];
        let udp = UdpView::parse(&data).unwrap();
        assert_eq!((udp.src_port(), udp.dst_port(), udp.length()), (50000, 53, 12));
        assert_eq!(udp.payload(), &[1, 2, 3, 4]);
        assert!(udp.checksum_ok(Checksum::new()));
        assert!(UdpView::parse(&data[..11]).is_err());
        assert_eq!(UdpView::parse_prefix(&data[..11]).unwrap().payload(), &[1, 2, 3]);
        assert!(UdpView::parse(&[0, 1, 0, 2, 0, 7, 0, 0]).is_err());
        assert!(
            UdpRepr { src_port: 1, dst_port: 2, payload_len: 65528 }.emit(&mut [0; 8]).is_err()
        );
    }

    proptest! {
        #[test]
        fn emitted_datagrams_parse_back_and_verify(
            ports: [u16; 4], ips: [u32; 3],
            payload in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let payload_len = payload.len() as u16;
            let repr = UdpRepr { src_port: ports[0], dst_port: ports[1], payload_len };
            let mut data = vec![0xff; 8];
            data.extend(&payload);
            repr.emit(&mut data).unwrap();
            let length = data.len() as u32;
            let pseudo = checksum::pseudo_v4(ips[0].into(), ips[1].into(), 17, length);
            prop_assert!(fill_checksum(pseudo, &mut data).unwrap() != 0);
            let view = UdpView::parse(&data).unwrap();
            prop_assert_eq!(view.repr(), repr);
            prop_assert!(view.checksum_ok(pseudo));

            let mut m = UdpMut::parse(&mut data).unwrap();
            m.set_src_port(ports[2]);
            m.set_dst_port(ports[3]);
            m.address_changed(ips[0].into(), ips[2].into());
            let pseudo = checksum::pseudo_v4(ips[2].into(), ips[1].into(), 17, length);
            let view = UdpView::parse(&data).unwrap();
            prop_assert!(view.checksum_ok(pseudo) && view.checksum() != 0);
        }

        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(view) = UdpView::parse(&data) {
                prop_assert_eq!(usize::from(view.length()), view.payload().len() + 8);
            }
            let _ = UdpView::parse_prefix(&data);
        }
    }
}
