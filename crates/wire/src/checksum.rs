//! The Internet checksum: RFC 1071 sums, RFC 1624 updates, and completion of offloaded checksums.
//!
//! A one's complement sum does not depend on byte order, so [`Checksum`] adds wide words as the
//! machine loads them and converts the result to network order once, at the end.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::{Result, WireError};

/// A running one's complement sum over any number of pieces.
///
/// Pieces may have odd lengths: the next piece then continues in the middle of a 16-bit word, as
/// if all pieces had been one slice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    /// Native byte order, not folded until it is read. All pieces together have less than 16 GiB.
    sum: u64,
    odd: bool,
}

impl Checksum {
    /// Creates an empty sum.
    #[inline]
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// Adds the next piece.
    #[inline]
    pub fn add(&mut self, data: &[u8]) {
        let sum = sum_native(data);
        if self.odd {
            self.add_native(fold_u64(sum));
        } else {
            self.sum += sum;
        }
        self.odd ^= data.len() & 1 != 0;
    }

    /// Adds a 16-bit field (host order), as if its two bytes came next.
    #[inline]
    pub fn add_u16(&mut self, v: u16) {
        self.add_native(v.to_be());
    }

    /// Adds a 32-bit field (host order), as if its four bytes came next.
    #[inline]
    pub fn add_u32(&mut self, v: u32) {
        self.add_native(fold_u64(u64::from(v.to_be())));
    }

    #[inline]
    fn add_native(&mut self, piece: u16) {
        self.sum += u64::from(if self.odd { piece.swap_bytes() } else { piece });
    }

    /// The sum folded to 16 bits, in host order: the content of a checksum field that an offloading
    /// device completes.
    #[inline]
    pub fn fold(&self) -> u16 {
        u16::from_be(fold_u64(self.sum))
    }

    /// The checksum to write into a packet: the complement of the folded sum.
    #[inline]
    pub fn finish(&self) -> u16 {
        !self.fold()
    }

    /// [`finish`](Self::finish) for UDP, where a checksum of zero would mean "none"
    /// (RFC 768): its other representation is sent instead.
    #[inline]
    pub fn finish_udp(&self) -> u16 {
        match self.finish() {
            0 => 0xffff,
            c => c,
        }
    }

    /// True if the bytes summed so far, which include their checksum field, are intact.
    #[inline]
    pub fn is_valid(&self) -> bool {
        // Folding keeps the remainder modulo 0xffff. The result is 0xffff for all multiples except
        // 0; one multiplication decides.
        self.sum != 0 && self.sum.is_multiple_of(0xffff)
    }
}

/// Adds native-order words without folding. The two halves of each 64-bit word are summed apart,
/// which cannot overflow below 16 GiB and leaves no carry to chase, so that it vectorizes.
#[inline]
fn sum_native(data: &[u8]) -> u64 {
    let (words, tail) = data.as_chunks::<8>();
    let (mut low, mut high) = (0u64, 0u64);
    for word in words {
        let w = u64::from_ne_bytes(*word);
        low += w & 0xffff_ffff;
        high += w >> 32;
    }
    let (pairs, last) = tail.as_chunks::<2>();
    for pair in pairs {
        low += u64::from(u16::from_ne_bytes(*pair));
    }
    if let [byte] = last {
        low += u64::from(u16::from_ne_bytes([*byte, 0]));
    }
    low + high
}

#[inline]
fn fold_u64(sum: u64) -> u16 {
    let s = (sum & 0xffff_ffff) + (sum >> 32);
    let s = (s & 0xffff_ffff) + (s >> 32);
    fold(s as u32)
}

/// Folds a sum of 16-bit words to 16 bits with end-around carry.
#[inline]
pub const fn fold(sum: u32) -> u16 {
    let s = (sum & 0xffff) + (sum >> 16);
    let s = (s & 0xffff) + (s >> 16);
    s as u16
}

/// The checksum over one slice, whose own checksum field must be zero.
#[inline]
pub fn checksum(data: &[u8]) -> u16 {
    let mut c = Checksum::new();
    c.add(data);
    c.finish()
}

/// True if `data`, which includes its checksum field, is intact.
#[inline]
pub fn verify(data: &[u8]) -> bool {
    let mut c = Checksum::new();
    c.add(data);
    c.is_valid()
}

/// The checksum of an IPv4 header without options, ignoring its checksum field.
#[inline]
pub fn ipv4_header(h: &[u8; 20]) -> u16 {
    let mut h = *h;
    h[10..12].fill(0);
    let sum = h.as_chunks::<4>().0.iter().map(|w| u64::from(u32::from_ne_bytes(*w))).sum();
    Checksum { sum, odd: false }.finish()
}

/// The sum of an IPv4 header without options, and that of its addresses and the 20 bytes after it:
/// to the second one add protocol, length and the rest of a TCP segment. The two are not folded.
#[inline]
pub fn ipv4_and_tcp(h: &[u8; 40]) -> (Checksum, Checksum) {
    let words = h.as_chunks::<4>().0;
    let sum =
        |some: &[[u8; 4]]| some.iter().map(|w| u64::from(u32::from_ne_bytes(*w))).sum::<u64>();
    let (before, addresses, behind) = (sum(&words[..3]), sum(&words[3..5]), sum(&words[5..]));
    let of = |sum| Checksum { sum, odd: false };
    (of(before + addresses), of(addresses + behind))
}

/// The sum of the pseudo-header of TCP and UDP over IPv4 (RFC 9293 section 3.1, RFC 768).
/// `length` counts the transport header and its payload.
#[inline]
pub fn pseudo_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, length: u32) -> Checksum {
    let mut c = Checksum::new();
    c.add_u32(src.to_bits());
    c.add_u32(dst.to_bits());
    c.add_u16(u16::from(protocol));
    c.add_u32(length);
    c
}

/// The sum of the pseudo-header of upper layers over IPv6 (RFC 8200 section 8.1).
#[inline]
pub fn pseudo_v6(src: &Ipv6Addr, dst: &Ipv6Addr, protocol: u8, length: u32) -> Checksum {
    let mut c = Checksum::new();
    c.add(&src.octets());
    c.add(&dst.octets());
    c.add_u32(length);
    c.add_u16(u16::from(protocol));
    c
}

/// The checksum after a 16-bit field changed from `old` to `new` (RFC 1624 equation 3).
#[inline]
pub const fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(!checksum as u32 + !old as u32 + new as u32)
}

/// The checksum after a 32-bit field, such as an IPv4 address, changed from `old` to `new`.
#[inline]
pub const fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    let (o, n) = (!old, new);
    let sum = !checksum as u32 + (o >> 16) + (o & 0xffff) + (n >> 16) + (n & 0xffff);
    !fold(sum)
}

/// Like [`update_u16`] for UDP: zero (no checksum) stays zero, and a result of zero is sent as
/// 0xffff.
#[inline]
pub const fn update_udp_u16(checksum: u16, old: u16, new: u16) -> u16 {
    udp_result(checksum, update_u16(checksum, old, new))
}

/// Like [`update_u32`] for UDP.
#[inline]
pub const fn update_udp_u32(checksum: u16, old: u32, new: u32) -> u16 {
    udp_result(checksum, update_u32(checksum, old, new))
}

#[inline]
const fn udp_result(before: u16, after: u16) -> u16 {
    match (before, after) {
        (0, _) => 0,
        (_, 0) => 0xffff,
        _ => after,
    }
}

/// The IPv4 header checksum after the TTL was decremented.
///
/// The TTL is the high byte of its word, so the checksum grows by 0x0100. A result of 0xffff is the
/// other representation of zero, and a header's sum is never zero: it becomes 0x0000, as in a
/// recomputation (RFC 1624 section 3).
#[inline]
pub const fn ttl_decrement(checksum: u16) -> u16 {
    let c = checksum as u32 + 0x0100;
    (c + (c >= 0xffff) as u32) as u16
}

/// TTL, protocol and checksum of an IPv4 header (bytes 8 to 11 as a little-endian word) after the
/// TTL was decremented: like [`ttl_decrement`], in fewer steps. The TTL must not be 0.
///
/// A one's complement sum does not depend on byte order, so that in this order the checksum, the
/// word's upper half, grows by 1.
#[inline(always)]
pub const fn ttl_decrement_word(word: u32) -> u32 {
    let carry = (word >= 0xfffe_0000) as u32;
    word.wrapping_add(0x0001_0000 - 1).wrapping_add(carry << 16)
}

/// Completes a checksum that a sender left to its network card (`CHECKSUM_PARTIAL`,
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`).
///
/// The field at `csum_start + csum_offset` holds the pseudo-header's sum; the checksum covers
/// everything from `csum_start` to the end of `frame`. Returns the checksum.
///
/// # Errors
/// `Truncated` if the field is outside the frame; the frame is then unchanged.
#[inline]
pub fn complete_partial(frame: &mut [u8], csum_start: usize, csum_offset: usize) -> Result<u16> {
    complete_partial_chain(frame, csum_start, csum_offset, core::iter::empty())
}

/// [`complete_partial`] for a frame in several pieces: `head` holds the headers with the checksum
/// field, `rest` yields the following pieces.
///
/// # Errors
/// `Truncated` if the field is outside `head`.
pub fn complete_partial_chain<'a>(
    head: &mut [u8],
    csum_start: usize,
    csum_offset: usize,
    rest: impl IntoIterator<Item = &'a [u8]>,
) -> Result<u16> {
    let have = head.len();
    let at = csum_start.saturating_add(csum_offset);
    let need = at.saturating_add(2);
    if need > have {
        return Err(WireError::Truncated { what: "offloaded checksum field", need, have });
    }
    let mut sum = Checksum::new();
    sum.add(&head[csum_start..]);
    for piece in rest {
        sum.add(piece);
    }
    // Only UDP has its checksum at offset 6, and only in UDP has zero a special meaning.
    let value = if csum_offset == 6 { sum.finish_udp() } else { sum.finish() };
    head[at..need].copy_from_slice(&value.to_be_bytes());
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// The definition, word by word.
    fn naive(data: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in data.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn the_example_of_rfc_1071() {
        let mut c = Checksum::new();
        c.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(c.fold(), 0xddf2);
        assert_eq!(c.finish(), 0x220d);
    }

    proptest! {
        #[test]
        fn headers_are_summed_at_once(h: [u8; 40], rest: Vec<u8>) {
            let (ip, mut tcp) = ipv4_and_tcp(&h);
            let (mut one, mut other) = (Checksum::new(), Checksum::new());
            one.add(&h[..20]);
            other.add(&h[12..]);
            prop_assert_eq!((ip.fold(), tcp.fold()), (one.fold(), other.fold()));
            tcp.add(&rest);
            other.add(&rest);
            prop_assert_eq!(tcp.fold(), other.fold());
        }
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // HC = 0xdd2f, m = 0x5555, m' = 0x3285: equation 3 gives 0x0000, equation 2 would not.
        assert_eq!(update_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn a_real_ipv4_header() {
        let h = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert!(verify(&h));
        assert_eq!(ipv4_header(&h), 0xb861);
    }

    #[test]
    fn ttl_decrement_equals_recomputation_for_every_checksum() {
        // Compute, for each sum of the other words, a header with TTL 64 and with TTL 63.
        for rest in 1..=0xffffu32 {
            let before = !fold(rest + 0x4006);
            let after = !fold(rest + 0x3f06);
            assert_eq!(ttl_decrement(before), after, "rest {rest:#x}");
        }
    }

    #[test]
    fn the_word_decrements_as_its_parts_do() {
        for checksum in 0..=0xffffu16 {
            for ttl in [1u8, 2, 64, 255] {
                let [high, low] = checksum.to_be_bytes();
                let word = u32::from_le_bytes([ttl, 17, high, low]);
                let [new_high, new_low] = ttl_decrement(checksum).to_be_bytes();
                let new = u32::from_le_bytes([ttl - 1, 17, new_high, new_low]);
                assert_eq!(ttl_decrement_word(word), new, "{checksum:#x} {ttl}");
            }
        }
    }

    #[test]
    fn udp_zero_is_sent_as_ones() {
        let mut c = Checksum::new();
        c.add_u16(0xffff);
        assert_eq!((c.finish(), c.finish_udp()), (0, 0xffff));
        assert_eq!(update_udp_u16(0, 1, 2), 0);
        let mut frame = [0xff, 0xff, 0, 0, 0, 0, 0, 0];
        assert_eq!(complete_partial(&mut frame, 0, 6), Ok(0xffff));
    }

    #[test]
    fn a_checksum_field_outside_of_the_frame_is_refused() {
        let mut frame = [0u8; 20];
        assert!(complete_partial(&mut frame, 14, 5).is_err());
        assert!(complete_partial(&mut frame, usize::MAX, 6).is_err());
        assert!(complete_partial(&mut frame, 14, usize::MAX).is_err());
        assert!(complete_partial(&mut frame, 14, 4).is_ok());
    }

    proptest! {
        #[test]
        fn wide_sums_equal_the_definition(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut c = Checksum::new();
            c.add(&data);
            prop_assert_eq!(c.fold(), naive(&data));
        }

        #[test]
        fn pieces_sum_like_the_whole(
            data in proptest::collection::vec(any::<u8>(), 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(data.len())).collect();
            cuts.sort_unstable();
            let (mut c, mut from) = (Checksum::new(), 0);
            for cut in cuts {
                c.add(&data[from..cut]);
                from = cut;
            }
            c.add(&data[from..]);
            prop_assert_eq!(c.fold(), naive(&data));
        }

        #[test]
        fn updates_equal_recomputation(
            mut data in proptest::collection::vec(any::<u8>(), 12..64),
            word in 0usize..4,
            new in any::<u32>(),
        ) {
            data[0] = 0x45; // a header is never all zero
            data.truncate(data.len() & !1);
            let at = 2 + word * 2;
            let before = checksum(&data);
            let old = u32::from_be_bytes(data[at..at + 4].try_into().unwrap());
            let mut wide = data.clone();
            wide[at..at + 4].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update_u32(before, old, new), checksum(&wide));
            data[at..at + 2].copy_from_slice(&(new as u16).to_be_bytes());
            prop_assert_eq!(update_u16(before, (old >> 16) as u16, new as u16), checksum(&data));
        }

        #[test]
        fn partial_checksums_complete_across_pieces(
            payload in proptest::collection::vec(any::<u8>(), 0..99),
            cut in 0usize..99,
            src in any::<u32>(),
            dst in any::<u32>(),
        ) {
            let mut frame = [&[0xaa; 5][..], &[0; 8], &payload].concat();
            let pseudo = pseudo_v4(src.into(), dst.into(), 17, frame.len() as u32 - 5);
            frame[11..13].copy_from_slice(&pseudo.fold().to_be_bytes());
            let mut chained = frame.clone();
            complete_partial(&mut frame, 5, 6).unwrap();
            let mut check = pseudo;
            check.add(&frame[5..]);
            prop_assert!(check.is_valid());
            let (head, rest) = chained.split_at_mut(13 + cut.min(payload.len()));
            complete_partial_chain(head, 5, 6, [&*rest]).unwrap();
            prop_assert_eq!(chained, frame);
        }
    }
}
