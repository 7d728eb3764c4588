//! The buffer that text is written to.
//!
//! A datagram becomes some thousands of short strings. Each is copied by a few moves of fixed
//! width, without a call and without asking how much room there is more than once.

use std::io;

use crate::value::Name;

/// Room that is always there for one short string or number.
const SHORT: usize = 32;

/// Bytes of what can stand in front of a field.
pub(super) const BLOCK: usize = 144;

/// Room for a value that is written by [`TextBuf::field`], twice what the longest one has.
pub(super) const VALUE: usize = 128;

/// Room for a field, twice what the bytes in front, a name with two prefixes and a value need.
pub(super) const FIELD: usize = 1024;

/// Bytes of a prefix that a field can have.
const PREFIX: usize = 64;

/// Room for a number, twice what the longest one needs.
pub(super) const DIGITS: usize = 64;

/// `00` to `99`.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

const fn hex_pairs(digits: &[u8; 16]) -> [[u8; 2]; 256] {
    let mut pairs = [[0; 2]; 256];
    let mut n = 0;
    while n < 256 {
        pairs[n] = [digits[n / 16], digits[n % 16]];
        n += 1;
    }
    pairs
}

/// Lower-case, as addresses have it.
static LOWER: [[u8; 2]; 256] = hex_pairs(b"0123456789abcdef");
/// Upper-case with what separates it from the next, as dumps of bytes have it; padded.
static DASHED: [[u8; 4]; 256] = {
    let upper = hex_pairs(b"0123456789ABCDEF");
    let mut out = [[b'-'; 4]; 256];
    let mut n = 0;
    while n < 256 {
        (out[n][0], out[n][1]) = (upper[n][0], upper[n][1]);
        n += 1;
    }
    out
};

/// `0.` to `255.`, padded, and how long these are.
static OCTETS: [([u8; 4], u8); 256] = {
    let mut octets = [([b'.'; 4], 0); 256];
    let mut n = 0;
    while n < 256 {
        let digits = [b'0' + (n / 100) as u8, b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8];
        let first = if n >= 100 { 0 } else { (n < 10) as usize + 1 };
        let mut at = first;
        while at < 3 {
            octets[n].0[at - first] = digits[at];
            at += 1;
        }
        octets[n].1 = (4 - first) as u8;
        n += 1;
    }
    octets
};

/// Appends to a buffer that is kept.
#[derive(Debug, Default)]
pub(super) struct TextBuf {
    /// Written bytes, and room.
    buf: Vec<u8>,
    at: usize,
}

impl TextBuf {
    pub(super) fn clear(&mut self) {
        self.at = 0;
    }

    pub(super) fn written(&self) -> &[u8] {
        &self.buf[..self.at]
    }

    #[cold]
    fn grow(&mut self, n: usize) {
        let size = (self.at + n).next_power_of_two().max(4096);
        self.buf.resize(size, 0);
    }

    /// Returns at least `n` bytes to write to.
    #[inline(always)]
    fn room(&mut self, n: usize) -> &mut [u8] {
        if self.buf.len() - self.at < n {
            self.grow(n);
        }
        &mut self.buf[self.at..]
    }

    /// Returns a number of bytes to write to.
    #[inline(always)]
    fn array<const N: usize>(&mut self) -> &mut [u8; N] {
        if self.at > self.buf.len() || self.buf.len() - self.at < N {
            return self.grown();
        }
        match self.buf[self.at..].first_chunk_mut() {
            Some(room) => room,
            None => unreachable!("there is as much"),
        }
    }

    /// The function is apart from [`TextBuf::array`], which then compares nothing twice.
    #[cold]
    fn grown<const N: usize>(&mut self) -> &mut [u8; N] {
        match self.room(N).first_chunk_mut() {
            Some(room) => room,
            None => unreachable!("the buffer has grown"),
        }
    }

    /// Keeps what is written up to a number of bytes, followed by what was written before, once the
    /// buffer has that size.
    #[inline(always)]
    pub(super) fn first<const N: usize>(&self) -> (&[u8; N], usize) {
        (self.buf.first_chunk().unwrap_or(&[0; N]), self.at)
    }

    /// Forgets all but the first `n` bytes.
    pub(super) fn truncate(&mut self, n: usize) {
        self.at = self.at.min(n);
    }

    #[inline(always)]
    pub(super) fn push(&mut self, byte: u8) {
        self.room(SHORT)[0] = byte;
        self.at += 1;
    }

    /// Appends bytes, few of them as a rule.
    #[inline(always)]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        let n = bytes.len();
        put(self.room(n.max(SHORT)), bytes);
        self.at += n;
    }

    /// Appends the first `n` bytes of a block.
    #[inline(always)]
    pub(super) fn block(&mut self, block: &[u8; BLOCK], n: usize) {
        let n = self::block(self.array::<BLOCK>(), block, n);
        self.at += n;
    }

    /// Appends a text of ours.
    #[inline(always)]
    pub(super) fn text(&mut self, text: &str) {
        self.put(text.as_bytes());
    }

    pub(super) fn spaces(&mut self, n: usize) {
        self.room(n)[..n].fill(b' ');
        self.at += n;
    }

    /// Appends what `write` writes, at most half of the room.
    #[inline(always)]
    pub(super) fn short(&mut self, write: impl FnOnce(&mut [u8; VALUE]) -> usize) {
        self.at += write(self.array());
    }

    /// Appends a decimal number.
    #[inline]
    pub(super) fn decimal(&mut self, n: u64) {
        self.at += decimal(self.array(), n);
    }

    /// Appends a field: what `lead` writes (at most [`BLOCK`] bytes, it says how many), a name with
    /// its prefixes, a few bytes, what `value` writes (at most half of [`VALUE`]), and a few more
    /// bytes. Most of all output is that; here it is known to fit, except for prefixes that no
    /// field has.
    #[inline(always)]
    pub(super) fn field<const B: usize, const A: usize>(
        &mut self,
        lead: impl FnOnce(&mut [u8; FIELD]) -> usize,
        prefixes: [&str; 2],
        name: &Name,
        (between, after): (&[u8; B], &[u8; A]),
        value: impl FnOnce(&mut [u8; VALUE]) -> usize,
    ) {
        let room = self.array::<FIELD>();
        let mut at = lead(room);
        if prefixes.iter().any(|prefix| !prefix.is_empty()) {
            for prefix in prefixes {
                debug_assert!(prefix.len() <= PREFIX, "a prefix that no field has");
                let prefix = &prefix.as_bytes()[..prefix.len().min(PREFIX)];
                put(spot::<PREFIX, _>(room, at), prefix);
                at += prefix.len();
            }
        }
        let padded = name.padded();
        *spot::<32, _>(room, at) = *padded.first_chunk().unwrap_or(&[0; 32]);
        if name.len() > 32 {
            *spot(room, at) = *padded;
        }
        at += name.len();
        *spot(room, at) = *between;
        at += B;
        at += value(spot(room, at));
        *spot(room, at) = *after;
        self.at += at + A;
    }

    /// Appends the last two decimal digits.
    pub(super) fn two_digits(&mut self, n: u64) {
        self.put(&PAIRS[(n % 100) as usize]);
    }

    /// Appends lower-case hexadecimal.
    #[inline]
    pub(super) fn hex(&mut self, bytes: &[u8]) {
        let n = hex(self.room(2 * bytes.len()), bytes);
        self.at += n;
    }

    /// Appends upper-case hexadecimal with `-` between bytes.
    pub(super) fn dashed_hex(&mut self, bytes: &[u8]) {
        dashed_hex(self.room(3 * bytes.len() + 1), bytes);
        // The last byte has no `-` behind it.
        self.at += (3 * bytes.len()).saturating_sub(1);
    }
}

/// `N` bytes from `at` on, which is in the first half of the room. The mask spares a comparison: it
/// shows the compiler that they fit.
#[inline(always)]
pub(super) fn spot<const N: usize, const R: usize>(room: &mut [u8; R], at: usize) -> &mut [u8; N] {
    const { assert!(R.is_power_of_two() && N <= R / 2, "half of the room is for what is written") };
    debug_assert!(at < R / 2);
    match room[at & (R / 2 - 1)..].first_chunk_mut() {
        Some(spot) => spot,
        None => unreachable!("half of the room is left"),
    }
}

/// Writes the first `n` bytes of a block to the front of room for all of it, all of which may be
/// copied: by moves of fixed width. Returns `n`, which is at most the length of the block.
#[inline(always)]
pub(super) fn block<const R: usize>(room: &mut [u8; R], block: &[u8; BLOCK], n: usize) -> usize {
    const { assert!(R >= BLOCK) };
    if n > 0 {
        room[..80].copy_from_slice(&block[..80]);
    }
    if n > 80 {
        room[80..BLOCK].copy_from_slice(&block[80..]);
    }
    n
}

/// Writes lower-case hexadecimal to the front of enough room; returns its length.
#[inline(always)]
pub(super) fn hex(room: &mut [u8], bytes: &[u8]) -> usize {
    let length = 2 * bytes.len();
    for (out, byte) in room[..length].as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *out = LOWER[usize::from(*byte)];
    }
    length
}

/// Writes upper-case hexadecimal with `-` behind each byte to the front of room for one byte more.
fn dashed_hex(room: &mut [u8], bytes: &[u8]) {
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut room = &mut room[..3 * bytes.len() + 1];
    for eight in eights {
        if let Some(out) = room.first_chunk_mut::<25>() {
            for (i, byte) in eight.iter().enumerate() {
                // The fourth byte is the next one's first.
                out[3 * i..3 * i + 4].copy_from_slice(&DASHED[usize::from(*byte)]);
            }
        }
        room = &mut room[24..];
    }
    for (i, byte) in rest.iter().enumerate() {
        room[3 * i..3 * i + 4].copy_from_slice(&DASHED[usize::from(*byte)]);
    }
}

/// Writes a dotted IPv4 address to the front of the room; returns its length.
#[inline(always)]
pub(super) fn dotted(room: &mut [u8; VALUE], octets: [u8; 4]) -> usize {
    let mut at = 0;
    for octet in octets {
        let (text, length) = OCTETS[usize::from(octet)];
        *spot(room, at) = text;
        at += usize::from(length);
    }
    // No dot belongs behind the last one.
    at - 1
}

/// Writes bytes to the front of enough room: [`SHORT`] bytes if there are fewer.
#[inline(always)]
pub(super) fn put(room: &mut [u8], bytes: &[u8]) {
    let n = bytes.len();
    match n {
        0 => {}
        1..=3 => {
            room[0] = bytes[0];
            room[n / 2] = bytes[n / 2];
            room[n - 1] = bytes[n - 1];
        }
        4..=7 => ends::<4>(room, bytes),
        8..=15 => ends::<8>(room, bytes),
        16..=32 => ends::<16>(room, bytes),
        33..=64 => ends::<32>(room, bytes),
        _ => room[..n].copy_from_slice(bytes),
    }
}

/// Writes a decimal number to the front of the room; returns its length.
#[inline(always)]
pub(super) fn decimal(room: &mut [u8; DIGITS], n: u64) -> usize {
    if n < 10 {
        room[0] = b'0' + n as u8;
        1
    } else if n < EIGHT_DIGITS {
        up_to_eight(room, n)
    } else {
        long_decimal(room, n)
    }
}

const EIGHT_DIGITS: u64 = 100_000_000;

/// Writes a number below [`EIGHT_DIGITS`].
#[inline(always)]
fn up_to_eight(room: &mut [u8; DIGITS], n: u64) -> usize {
    let digits = eight(n);
    let zeros = (digits.trailing_zeros() / 8).min(7);
    *spot(room, 0) = ((digits | ASCII_ZEROS) >> (8 * zeros)).to_le_bytes();
    8 - zeros as usize
}

/// Writes a number that is not.
#[inline(never)]
fn long_decimal(room: &mut [u8; DIGITS], n: u64) -> usize {
    let (high, low) = (n / EIGHT_DIGITS, n % EIGHT_DIGITS);
    let at = match high {
        ..EIGHT_DIGITS => up_to_eight(room, high),
        _ => {
            let at = up_to_eight(room, high / EIGHT_DIGITS);
            *spot(room, at) = (eight(high % EIGHT_DIGITS) | ASCII_ZEROS).to_le_bytes();
            at + 8
        }
    };
    *spot(room, at) = (eight(low) | ASCII_ZEROS).to_le_bytes();
    at + 8
}

const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

/// The eight digits of a number below [`EIGHT_DIGITS`], a byte each, the first one lowest. The
/// number is halved three times, all parts at once: each part's upper half stays, what is left goes
/// above it. The divisions by 100 and 10 are multiplications that are exact for four and two
/// digits.
#[inline(always)]
fn eight(n: u64) -> u64 {
    let fours = (n / 10_000) | ((n % 10_000) << 32);
    let hundreds = ((fours * 5243) >> 19) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - 10 * tens) << 8)
}

/// Copies the first and the last `N` bytes, which overlap.
#[inline(always)]
fn ends<const N: usize>(room: &mut [u8], bytes: &[u8]) {
    let n = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<N>(), bytes.last_chunk::<N>())
        && let Some(room) = room.get_mut(..n)
    {
        if let Some(out) = room.first_chunk_mut::<N>() {
            *out = *first;
        }
        if let Some(out) = room.last_chunk_mut::<N>() {
            *out = *last;
        }
    }
}

impl io::Write for TextBuf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut TextBuf)) -> String {
        let mut buf = TextBuf::default();
        buf.push(b'<');
        write(&mut buf);
        buf.push(b'>');
        String::from_utf8(buf.written().to_vec()).unwrap()
    }

    #[test]
    fn strings_of_every_length() {
        let text = "The quick brown fox jumps over the lazy dog, and again.";
        for n in 0..text.len() {
            assert_eq!(written(|buf| buf.text(&text[..n])), format!("<{}>", &text[..n]));
        }
        let long = "x".repeat(10_000);
        assert_eq!(written(|buf| buf.text(&long)).len(), 10_002);
        assert_eq!(written(|buf| buf.spaces(3)), "<   >");
    }

    #[test]
    fn numbers_of_every_length() {
        let mut n: u64 = 1;
        for _ in 0..20 {
            for n in [n - 1, n, n + 1, n.wrapping_mul(9), u64::MAX - n] {
                assert_eq!(written(|buf| buf.decimal(n)), format!("<{n}>"));
            }
            n = n.wrapping_mul(10);
        }
        for n in (0..3_000_000_000).step_by(37_123).chain(0..20_000) {
            assert_eq!(written(|buf| buf.decimal(n)), format!("<{n}>"));
        }
        assert_eq!(written(|buf| buf.two_digits(7)), "<07>");
    }

    #[test]
    fn blocks_of_every_length() {
        let block: [u8; BLOCK] = std::array::from_fn(|i| b'a' + (i % 26) as u8);
        for n in 0..=BLOCK {
            let text = String::from_utf8(block[..n].to_vec()).unwrap();
            assert_eq!(written(|buf| buf.block(&block, n)), format!("<{text}>"));
        }
    }

    #[test]
    fn fields_of_every_length() {
        const NAMES: [&Name; 4] = [
            &Name::new("n"),
            &Name::new("of_thirty_two_bytes_as_it_happens"),
            &Name::new("dot11MulticastTransmittedFrameCount"),
            &Name::new("of_forty_eight_bytes__the_most_that_there_can_be"),
        ];
        let block: [u8; BLOCK] = std::array::from_fn(|i| b'a' + (i % 26) as u8);
        let long = "y".repeat(PREFIX);
        for lead in [0, 1, 79, 80, 81, BLOCK - 1, BLOCK] {
            for prefixes in [["", ""], ["", "a_"], ["discarded_", "inner_"], [&long, &long]] {
                for (name, n) in
                    NAMES.iter().flat_map(|name| [0, 7, 100, u64::MAX].map(|n| (name, n)))
                {
                    let before = str::from_utf8(&block[..lead]).unwrap();
                    let text = str::from_utf8(name.as_bytes()).unwrap();
                    let line = format!("<{before}{}{text}: {n}\n>", prefixes.concat());
                    let lead = |room: &mut [u8; FIELD]| super::block(room, &block, lead);
                    let value = |room: &mut [u8; VALUE]| super::decimal(spot(room, 0), n);
                    let written =
                        written(|buf| buf.field(lead, prefixes, name, (b": ", b"\n"), value));
                    assert_eq!(written, line);
                }
            }
        }
    }

    #[test]
    fn addresses() {
        for n in 0..=255_u8 {
            let ip = std::net::Ipv4Addr::new(n, 255 - n, n, n.wrapping_mul(7));
            let mut room = [0; VALUE];
            let length = dotted(&mut room, ip.octets());
            assert_eq!(str::from_utf8(&room[..length]).unwrap(), ip.to_string());
        }
    }

    #[test]
    fn bytes() {
        assert_eq!(written(|buf| buf.hex(&[0, 0xab, 0xff])), "<00abff>");
        assert_eq!(written(|buf| buf.dashed_hex(&[0, 0xab, 0xff])), "<00-AB-FF>");
        for n in 0..40_u8 {
            let bytes: Vec<u8> = (0..n).map(|i| i.wrapping_mul(97)).collect();
            let text: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            assert_eq!(written(|buf| buf.dashed_hex(&bytes)), format!("<{}>", text.join("-")));
        }
    }
}
