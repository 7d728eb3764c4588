//! TCP (RFC 9293): header, flags and options.

use core::net::Ipv4Addr;

use crate::bytes::{be16, be32, header, header_mut, next_option, put};
use crate::checksum::{self, Checksum};
use crate::{Result, WireError};

/// Bytes in a header without options.
pub const HEADER_LEN: usize = 20;
/// Bytes in the longest header.
pub const MAX_HEADER_LEN: usize = 60;
/// Offset of the checksum in the header.
pub const CHECKSUM_OFFSET: usize = 16;

/// The flag bits.
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronize: opens a connection.
    pub const SYN: u8 = 0x02;
    /// Resets the connection.
    pub const RST: u8 = 0x04;
    /// Push: deliver the data to the application now.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer is valid.
    pub const URG: u8 = 0x20;
    /// The network signalled congestion (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;

    /// Names, lowest bit first.
    pub const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
}

const SRC_PORT: usize = 0;
const DST_PORT: usize = 2;
pub(crate) const SEQ: usize = 4;
const ACK: usize = 8;
const OFFSET: usize = 12;
pub(crate) const FLAGS: usize = 13;
const WINDOW: usize = 14;
const URGENT: usize = 18;
const WHAT: &str = "TCP header";

/// A TCP segment.
#[derive(Clone, Copy, Debug)]
pub struct TcpView<'a> {
    header: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> TcpView<'a> {
    /// Parses the segment in `data`, which the caller has cut to the IP payload.
    ///
    /// # Errors
    /// `Truncated`, or `BadHeaderLength` if the data offset is below 20 bytes or beyond the
    /// segment.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let (header, rest) = header::<HEADER_LEN>(data, WHAT)?;
        let length = usize::from(header[OFFSET] >> 4) * 4;
        let options = length.checked_sub(HEADER_LEN).and_then(|n| rest.split_at_checked(n));
        match options {
            Some((options, payload)) => Ok(Self { header, options, payload }),
            None => Err(WireError::BadHeaderLength { what: WHAT, length }),
        }
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

    /// The sequence number.
    #[inline]
    pub fn seq(&self) -> u32 {
        be32(self.header, SEQ)
    }

    /// The acknowledgement number.
    #[inline]
    pub fn ack(&self) -> u32 {
        be32(self.header, ACK)
    }

    /// Bytes in the header with its options.
    #[inline]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.options.len()
    }

    /// The flags (see [`flag`]).
    #[inline]
    pub fn flags(&self) -> u8 {
        self.header[FLAGS]
    }

    /// The window, before scaling.
    #[inline]
    pub fn window(&self) -> u16 {
        be16(self.header, WINDOW)
    }

    /// The checksum field.
    #[inline]
    pub fn checksum(&self) -> u16 {
        be16(self.header, CHECKSUM_OFFSET)
    }

    /// The urgent pointer.
    #[inline]
    pub fn urgent(&self) -> u16 {
        be16(self.header, URGENT)
    }

    /// The options as on the wire, up to 40 bytes.
    #[inline]
    pub fn options_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// The options one by one.
    #[inline]
    pub fn options(&self) -> Options<'a> {
        Options { rest: self.options }
    }

    /// The maximum segment size option, in bytes.
    pub fn mss(&self) -> Option<u16> {
        self.options().find_map(|o| match o {
            Ok(TcpOption::MaxSegmentSize(mss)) => Some(mss),
            _ => None,
        })
    }

    /// The bytes after the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// True if the segment is intact. `pseudo` is the sum of its pseudo-header.
    pub fn checksum_ok(&self, pseudo: Checksum) -> bool {
        let mut sum = pseudo;
        sum.add(self.header);
        sum.add(self.options);
        sum.add(self.payload);
        sum.is_valid()
    }

    /// The header's fields, without its options.
    pub fn repr(&self) -> TcpRepr {
        TcpRepr {
            src_port: self.src_port(),
            dst_port: self.dst_port(),
            seq: self.seq(),
            ack: self.ack(),
            flags: self.flags(),
            window: self.window(),
            urgent: self.urgent(),
        }
    }
}

/// A TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// Kind 2: maximum segment size, in bytes.
    MaxSegmentSize(u16),
    /// Kind 3: window scale (RFC 7323).
    WindowScale(u8),
    /// Kind 4: selective acknowledgements are permitted (RFC 2018).
    SackPermitted,
    /// Kind 5: selective acknowledgements, eight bytes each.
    Sack(&'a [u8]),
    /// Kind 8: timestamps (RFC 7323).
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The peer's clock, echoed.
        echo: u32,
    },
    /// Any other kind, or a known kind of a wrong length.
    Other {
        /// The kind.
        kind: u8,
        /// The bytes after kind and length.
        data: &'a [u8],
    },
}

/// Walks the options; ends at the end-of-list option, or with an error at a bad length.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<TcpOption<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, data) = match next_option(&mut self.rest, "TCP option")? {
            Ok(option) => option,
            Err(e) => return Some(Err(e)),
        };
        Some(Ok(match (kind, data) {
            (2, &[a, b]) => TcpOption::MaxSegmentSize(u16::from_be_bytes([a, b])),
            (3, &[shift]) => TcpOption::WindowScale(shift),
            (4, []) => TcpOption::SackPermitted,
            (5, blocks) => TcpOption::Sack(blocks),
            (8, &[a, b, c, d, e, f, g, h]) => TcpOption::Timestamps {
                value: u32::from_be_bytes([a, b, c, d]),
                echo: u32::from_be_bytes([e, f, g, h]),
            },
            (kind, data) => TcpOption::Other { kind, data },
        }))
    }
}

/// The fields of a TCP header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpRepr {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// The flags (see [`flag`]).
    pub flags: u8,
    /// The window, before scaling.
    pub window: u16,
    /// The urgent pointer.
    pub urgent: u16,
}

impl TcpRepr {
    /// Writes the header without a checksum (see [`fill_checksum`]) and returns its length.
    /// `options` must have a multiple of four bytes and at most 40.
    ///
    /// # Errors
    /// `NoRoom`, or `BadHeaderLength` for options of another length.
    pub fn emit(&self, options: &[u8], buf: &mut [u8]) -> Result<usize> {
        let length = HEADER_LEN + options.len();
        if !length.is_multiple_of(4) || length > MAX_HEADER_LEN {
            return Err(WireError::BadHeaderLength { what: WHAT, length });
        }
        let no_room = WireError::NoRoom { what: WHAT, need: length, have: buf.len() };
        let whole = buf.get_mut(..length).ok_or(no_room)?;
        let (b, tail) = whole.split_first_chunk_mut::<HEADER_LEN>().ok_or(no_room)?;
        put(b, SRC_PORT, self.src_port.to_be_bytes());
        put(b, DST_PORT, self.dst_port.to_be_bytes());
        put(b, SEQ, self.seq.to_be_bytes());
        put(b, ACK, self.ack.to_be_bytes());
        b[OFFSET] = ((length / 4) as u8) << 4;
        b[FLAGS] = self.flags;
        put(b, WINDOW, self.window.to_be_bytes());
        put(b, CHECKSUM_OFFSET, [0, 0]);
        put(b, URGENT, self.urgent.to_be_bytes());
        tail.copy_from_slice(options);
        Ok(length)
    }
}

/// Computes and writes the checksum of a segment, header and payload in one slice.
///
/// # Errors
/// `Truncated` below 20 bytes.
pub fn fill_checksum(pseudo: Checksum, segment: &mut [u8]) -> Result<u16> {
    let (h, rest) = header_mut::<HEADER_LEN>(segment, WHAT)?;
    put(h, CHECKSUM_OFFSET, [0, 0]);
    let mut sum = pseudo;
    sum.add(h);
    sum.add(rest);
    let value = sum.finish();
    put(h, CHECKSUM_OFFSET, value.to_be_bytes());
    Ok(value)
}

/// A header for changes in place. Each setter updates the checksum (RFC 1624).
#[derive(Debug)]
pub struct TcpMut<'a> {
    header: &'a mut [u8; HEADER_LEN],
    rest: &'a mut [u8],
}

impl<'a> TcpMut<'a> {
    /// Takes the header at the start of `data`.
    ///
    /// # Errors
    /// `Truncated` below 20 bytes.
    #[inline]
    pub fn parse(data: &'a mut [u8]) -> Result<Self> {
        let (header, rest) = header_mut(data, WHAT)?;
        Ok(Self { header, rest })
    }

    /// Sets the source port.
    #[inline]
    pub fn set_src_port(&mut self, port: u16) {
        self.update(be16(self.header, SRC_PORT), port);
        put(self.header, SRC_PORT, port.to_be_bytes());
    }

    /// Sets the destination port.
    #[inline]
    pub fn set_dst_port(&mut self, port: u16) {
        self.update(be16(self.header, DST_PORT), port);
        put(self.header, DST_PORT, port.to_be_bytes());
    }

    /// Updates the checksum after an address change in the pseudo-header.
    #[inline]
    pub fn address_changed(&mut self, old: Ipv4Addr, new: Ipv4Addr) {
        let before = be16(self.header, CHECKSUM_OFFSET);
        let sum = checksum::update_u32(before, old.to_bits(), new.to_bits());
        put(self.header, CHECKSUM_OFFSET, sum.to_be_bytes());
    }

    /// Lowers the maximum segment size option to `max` bytes if it is above, and each of several:
    /// receivers differ in which of them counts. Returns the last original size that was lowered.
    pub fn clamp_mss(&mut self, max: u16) -> Option<u16> {
        let length = usize::from(self.header[OFFSET] >> 4) * 4;
        let end = length.checked_sub(HEADER_LEN).filter(|&n| n <= self.rest.len())?;
        let (mut from, mut lowered) = (0, None);
        loop {
            let mut walk: &[u8] = &self.rest[from..end];
            let offered = loop {
                match next_option(&mut walk, "TCP option") {
                    Some(Ok((2, &[a, b]))) if u16::from_be_bytes([a, b]) > max => {
                        break u16::from_be_bytes([a, b]);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return lowered,
                }
            };
            from = end - walk.len();
            let at = from - 2;
            // The option may start anywhere; at an odd offset its bytes are in swapped halves.
            match at % 2 {
                0 => self.update(offered, max),
                _ => self.update(offered.swap_bytes(), max.swap_bytes()),
            }
            self.rest[at..from].copy_from_slice(&max.to_be_bytes());
            lowered = Some(offered);
        }
    }

    #[inline]
    fn update(&mut self, old: u16, new: u16) {
        let sum = checksum::update_u16(be16(self.header, CHECKSUM_OFFSET), old, new);
        put(self.header, CHECKSUM_OFFSET, sum.to_be_bytes());
    }
}

/// [`TcpMut::clamp_mss`] of a segment. `partial`: a device is still to complete its checksum, which
/// does not include options then.
pub fn clamp_mss(segment: &mut [u8], max: u16, partial: bool) {
    let Ok(mut tcp) = TcpMut::parse(segment) else { return };
    let before = be16(tcp.header, CHECKSUM_OFFSET);
    if tcp.clamp_mss(max).is_some() && partial {
        put(tcp.header, CHECKSUM_OFFSET, before.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// A SYN as Linux sends it.
    const SYN: [u8; 40] = [
        0xee, 0x44, 0x1f, 0x90, 0xd2, 0x6c, 0xe5, 0x51, 0, 0, 0, 0, 0xa0, 0x02, 0x72, 0x10, 0x23,
        0x37, 0, 0, 2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 1, 2, 3, 0, 0, 0, 0, 1, 3, 3, 7,
    ];

    #[test]
    fn a_syn_with_its_options() {
        let tcp = TcpView::parse(&SYN).unwrap();
        assert_eq!((tcp.src_port(), tcp.dst_port(), tcp.seq()), (60996, 8080, 0xd26c_e551));
        assert_eq!((tcp.flags(), tcp.window(), tcp.header_len()), (flag::SYN, 29200, 40));
        let options: Vec<_> = tcp.options().collect();
        let want = [
            Ok(TcpOption::MaxSegmentSize(1460)),
            Ok(TcpOption::SackPermitted),
            Ok(TcpOption::Timestamps { value: 0x10203, echo: 0 }),
            Ok(TcpOption::WindowScale(7)),
        ];
        assert_eq!(options, want);
        assert_eq!(tcp.mss(), Some(1460));
    }

    #[test]
    fn a_bad_data_offset_is_refused() {
        for offset in [0x40, 0xb0] {
            let mut data = SYN;
            data[12] = offset;
            let e = TcpView::parse(&data).unwrap_err();
            assert!(matches!(e, WireError::BadHeaderLength { .. }));
        }
        let e = TcpView::parse(&SYN[..19]).unwrap_err();
        assert_eq!(e, WireError::Truncated { what: WHAT, need: 20, have: 19 });
    }

    #[test]
    fn clamping_keeps_the_checksum_at_even_and_odd_places() {
        for options in [[2, 4, 5, 0xb4, 1, 1, 1, 0], [1, 2, 4, 5, 0xb4, 1, 1, 0]] {
            let mut data = SYN;
            data[12] = 0x70;
            data[20..28].copy_from_slice(&options);
            fill_checksum(Checksum::new(), &mut data).unwrap();
            assert_eq!(TcpMut::parse(&mut data).unwrap().clamp_mss(1460), None);
            assert_eq!(TcpMut::parse(&mut data).unwrap().clamp_mss(1200), Some(1460));
            let tcp = TcpView::parse(&data).unwrap();
            assert_eq!(tcp.mss(), Some(1200));
            assert!(tcp.checksum_ok(Checksum::new()));
        }
    }

    /// A receiver may take the first or the last.
    #[test]
    fn each_of_several_sizes_is_clamped() {
        let mut data = SYN;
        data[12] = 0x90;
        data[20..36].copy_from_slice(&[2, 4, 2, 0, 1, 2, 4, 5, 0xb4, 2, 4, 0xff, 0xff, 2, 0, 0]);
        fill_checksum(Checksum::new(), &mut data).unwrap();
        assert_eq!(TcpMut::parse(&mut data).unwrap().clamp_mss(1200), Some(0xffff));
        let tcp = TcpView::parse(&data).unwrap();
        let sizes: Vec<_> = tcp.options().filter_map(Result::ok).collect();
        assert_eq!(sizes, [512, 1200, 1200].map(TcpOption::MaxSegmentSize));
        assert!(tcp.checksum_ok(Checksum::new()));
    }

    prop_compose! {
        fn reprs()(ports: [u16; 2], seq: u32, ack: u32, flags: u8, window: u16, urgent: u16)
            -> TcpRepr {
            let [src_port, dst_port] = ports;
            TcpRepr { src_port, dst_port, seq, ack, flags, window, urgent }
        }
    }

    proptest! {
        #[test]
        fn emitted_segments_parse_back_and_verify(
            repr in reprs(), words in 0usize..10, ports: [u16; 2], ips: [u32; 2],
            payload in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let options = [1u8; 40];
            let length = 20 + words * 4;
            let mut data = [&[0xff; 60][..length], &payload].concat();
            prop_assert_eq!(repr.emit(&options[..words * 4], &mut data), Ok(length));
            let pseudo = |ip: u32| checksum::pseudo_v4(ip.into(), [10, 0, 0, 1].into(), 6, 0);
            fill_checksum(pseudo(ips[0]), &mut data).unwrap();
            let view = TcpView::parse(&data).unwrap();
            prop_assert_eq!((view.repr(), view.payload()), (repr, &payload[..]));
            prop_assert!(view.checksum_ok(pseudo(ips[0])));

            let mut m = TcpMut::parse(&mut data).unwrap();
            m.set_src_port(ports[0]);
            m.set_dst_port(ports[1]);
            m.address_changed(ips[0].into(), ips[1].into());
            prop_assert!(TcpView::parse(&data).unwrap().checksum_ok(pseudo(ips[1])));
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            mut data in proptest::collection::vec(any::<u8>(), 0..80), mss: u16,
        ) {
            if let Ok(view) = TcpView::parse(&data) {
                prop_assert_eq!(view.header_len() + view.payload().len(), data.len());
                prop_assert!(view.options().count() <= 40);
            }
            if let Ok(mut m) = TcpMut::parse(&mut data) {
                m.clamp_mss(mss);
            }
        }
    }
}
