//! The buffer that text is written to.
//!
//! A datagram becomes some thousands of short strings. Each is copied by a few moves of fixed width,
//! without a call and without asking how much room there is more than once.

use std::io;

/// Room that is always there for one short string or number.
const SHORT: usize = 32;

/// Bytes of what is written by [`Pen::block`].
pub(super) const BLOCK: usize = 128;

/// Bytes of a value that [`Pen::field`] has room for.
pub(super) const VALUE: usize = 64;

/// `00` to `99`.
const PAIRS: [[u8; 2]; 100] = {
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
const LOWER: [[u8; 2]; 256] = hex_pairs(b"0123456789abcdef");
/// Upper-case with what separates it from the next, as dumps of bytes have it; padded.
const DASHED: [[u8; 4]; 256] = {
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
const OCTETS: [([u8; 4], u8); 256] = {
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
pub(super) struct Pen {
    /// What is written, and room.
    buf: Vec<u8>,
    at: usize,
}

impl Pen {
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

    /// At least `n` bytes to write to.
    #[inline(always)]
    fn room(&mut self, n: usize) -> &mut [u8] {
        if self.buf.len() - self.at < n {
            self.grow(n);
        }
        &mut self.buf[self.at..]
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
        let n = self::block(self.room(BLOCK), block, n);
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

    /// Appends a decimal number.
    #[inline]
    pub(super) fn decimal(&mut self, n: u64) {
        self.at += decimal(self.room(SHORT), n);
    }

    /// Appends a field: what `lead` writes (at most [`BLOCK`] bytes, it says how many), a name in parts,
    /// a few bytes, what `value` writes (at most [`VALUE`] bytes), and a few more bytes. Most of all
    /// output is that, and here the place in the buffer need be looked up only once.
    #[inline(always)]
    pub(super) fn field<const B: usize, const A: usize>(
        &mut self,
        lead: impl FnOnce(&mut [u8]) -> usize,
        name: [&str; 3],
        (between, after): (&[u8; B], &[u8; A]),
        value: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let length = name.iter().map(|part| part.len()).sum::<usize>();
        let room = self.room(BLOCK + length + 2 * SHORT + VALUE + B + A);
        let mut at = lead(room);
        for part in name {
            put(&mut room[at..], part.as_bytes());
            at += part.len();
        }
        room[at..at + B].copy_from_slice(between);
        at += B;
        at += value(&mut room[at..]);
        room[at..at + A].copy_from_slice(after);
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
        let n = dashed_hex(self.room(3 * bytes.len() + 1), bytes);
        self.at += n;
    }
}

/// Writes the first `n` bytes of a block to the front of room for all of it, all of which may be copied:
/// by moves of fixed width. Returns `n`.
#[inline(always)]
pub(super) fn block(room: &mut [u8], block: &[u8; BLOCK], n: usize) -> usize {
    if n > 0 {
        room[..BLOCK / 2].copy_from_slice(&block[..BLOCK / 2]);
    }
    if n > BLOCK / 2 {
        room[BLOCK / 2..BLOCK].copy_from_slice(&block[BLOCK / 2..]);
    }
    n.min(BLOCK)
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

/// Writes upper-case hexadecimal with `-` between bytes; there is room for one byte more.
fn dashed_hex(room: &mut [u8], bytes: &[u8]) -> usize {
    let room = &mut room[..3 * bytes.len() + 1];
    for (i, byte) in bytes.iter().enumerate() {
        // The fourth byte is the next one's first.
        if let Some(out) = room[3 * i..].first_chunk_mut::<4>() {
            *out = DASHED[usize::from(*byte)];
        }
    }
    (3 * bytes.len()).saturating_sub(1)
}

/// Writes a dotted IPv4 address to the front of enough room; returns its length.
#[inline(always)]
pub(super) fn dotted(room: &mut [u8], octets: [u8; 4]) -> usize {
    let mut at = 0;
    for octet in octets {
        let (text, length) = OCTETS[usize::from(octet)];
        room[at..at + 4].copy_from_slice(&text);
        at += usize::from(length);
    }
    // Behind the last one there is a dot.
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
        _ => room[..n].copy_from_slice(bytes),
    }
}

/// Writes a decimal number to the front of enough room; returns its length.
#[inline(always)]
pub(super) fn decimal(room: &mut [u8], n: u64) -> usize {
    if n < 10 {
        room[0] = b'0' + n as u8;
        1
    } else if n < 100 {
        room[..2].copy_from_slice(&PAIRS[n as usize]);
        2
    } else if n < 10_000 {
        // Four digits, of which the first may be one too many.
        let [first, second] = PAIRS[(n / 100) as usize];
        let [third, fourth] = PAIRS[(n % 100) as usize];
        let (digits, short) = (u32::from_le_bytes([first, second, third, fourth]), n < 1000);
        room[..4].copy_from_slice(&(digits >> (8 * u32::from(short))).to_le_bytes());
        4 - usize::from(short)
    } else {
        long_decimal(room, n)
    }
}

fn long_decimal(room: &mut [u8], mut n: u64) -> usize {
    let length = n.ilog10() as usize + 1;
    let digits = &mut room[..length];
    let mut end = length;
    while n >= 100 {
        digits[end - 2..end].copy_from_slice(&PAIRS[(n % 100) as usize]);
        n /= 100;
        end -= 2;
    }
    match end {
        1 => digits[0] = b'0' + n as u8,
        _ => digits[..2].copy_from_slice(&PAIRS[n as usize]),
    }
    length
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

impl io::Write for Pen {
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

    fn written(write: impl FnOnce(&mut Pen)) -> String {
        let mut pen = Pen::default();
        pen.push(b'<');
        write(&mut pen);
        pen.push(b'>');
        String::from_utf8(pen.written().to_vec()).unwrap()
    }

    #[test]
    fn strings_of_every_length() {
        let text = "The quick brown fox jumps over the lazy dog, and again.";
        for n in 0..text.len() {
            assert_eq!(written(|pen| pen.text(&text[..n])), format!("<{}>", &text[..n]));
        }
        let long = "x".repeat(10_000);
        assert_eq!(written(|pen| pen.text(&long)).len(), 10_002);
        assert_eq!(written(|pen| pen.spaces(3)), "<   >");
    }

    #[test]
    fn numbers_of_every_length() {
        let mut n: u64 = 1;
        for _ in 0..20 {
            for n in [n - 1, n, n + 1, n.wrapping_mul(9), u64::MAX - n] {
                assert_eq!(written(|pen| pen.decimal(n)), format!("<{n}>"));
            }
            n = n.wrapping_mul(10);
        }
        assert_eq!(written(|pen| pen.two_digits(7)), "<07>");
    }

    #[test]
    fn blocks_of_every_length() {
        let block: [u8; BLOCK] = std::array::from_fn(|i| b'a' + (i % 26) as u8);
        for n in 0..=BLOCK {
            let text = String::from_utf8(block[..n].to_vec()).unwrap();
            assert_eq!(written(|pen| pen.block(&block, n)), format!("<{text}>"));
        }
    }

    #[test]
    fn fields_of_every_length() {
        let block: [u8; BLOCK] = std::array::from_fn(|i| b'a' + (i % 26) as u8);
        let long = "y".repeat(5000);
        for lead in [0, 1, 63, 64, 65, 127, 128] {
            for name in [["", "", "name"], ["a_", "", "name"], ["a_", "b_", &long[..]]] {
                for n in [0, 7, 42, 100, u64::MAX] {
                    let before = str::from_utf8(&block[..lead]).unwrap();
                    let line = format!("<{before}{}: {n}\n>", name.concat());
                    let lead = |room: &mut [u8]| super::block(room, &block, lead);
                    let value = |room: &mut [u8]| super::decimal(room, n);
                    let written = written(|pen| pen.field(lead, name, (b": ", b"\n"), value));
                    assert_eq!(written, line);
                }
            }
        }
    }

    #[test]
    fn addresses() {
        for n in 0..=255_u8 {
            let ip = std::net::Ipv4Addr::new(n, 255 - n, n, n.wrapping_mul(7));
            let mut room = [0; 16];
            let length = dotted(&mut room, ip.octets());
            assert_eq!(str::from_utf8(&room[..length]).unwrap(), ip.to_string());
        }
    }

    #[test]
    fn bytes() {
        assert_eq!(written(|pen| pen.hex(&[0, 0xab, 0xff])), "<00abff>");
        assert_eq!(written(|pen| pen.dashed_hex(&[0, 0xab, 0xff])), "<00-AB-FF>");
        assert_eq!(written(|pen| pen.dashed_hex(&[])), "<>");
    }
}
