//! The buffer that text is written to.
//!
//! A datagram becomes some thousands of short strings. Each is copied by a few moves of fixed width,
//! without a call and without asking how much room there is more than once.

use std::io;

/// Room that is always there for one short string or number.
const SHORT: usize = 32;

/// Bytes of what is written by [`Pen::block`].
pub(super) const BLOCK: usize = 128;

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
/// Upper-case, as dumps of bytes have it.
const UPPER: [[u8; 2]; 256] = hex_pairs(b"0123456789ABCDEF");

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

    /// Appends the first `n` bytes of a block, all of which may be copied: by moves of fixed width.
    #[inline(always)]
    pub(super) fn block(&mut self, block: &[u8; BLOCK], n: usize) {
        let room = self.room(BLOCK);
        room[..BLOCK / 2].copy_from_slice(&block[..BLOCK / 2]);
        if n > BLOCK / 2 {
            room[BLOCK / 2..BLOCK].copy_from_slice(&block[BLOCK / 2..]);
        }
        self.at += n.min(BLOCK);
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

    /// Appends a line of `lead` bytes of a block, a name in parts, a blank and a number: most lines
    /// are such, and here the place in the buffer need be looked up only once.
    #[inline]
    pub(super) fn field(&mut self, block: &[u8; BLOCK], lead: usize, name: [&str; 3], n: u64) {
        let length = name.iter().map(|part| part.len()).sum::<usize>();
        let room = self.room(BLOCK + length + 2 * SHORT);
        if lead > 0 {
            room[..BLOCK / 2].copy_from_slice(&block[..BLOCK / 2]);
        }
        if lead > BLOCK / 2 {
            room[BLOCK / 2..BLOCK].copy_from_slice(&block[BLOCK / 2..]);
        }
        let mut at = lead.min(BLOCK);
        for part in name {
            put(&mut room[at..], part.as_bytes());
            at += part.len();
        }
        room[at] = b' ';
        at += 1;
        at += decimal(&mut room[at..], n);
        room[at] = b'\n';
        self.at += at + 1;
    }

    /// Appends the last two decimal digits.
    pub(super) fn two_digits(&mut self, n: u64) {
        self.put(&PAIRS[(n % 100) as usize]);
    }

    /// Appends lower-case hexadecimal.
    #[inline]
    pub(super) fn hex(&mut self, bytes: &[u8]) {
        let length = 2 * bytes.len();
        let room = &mut self.room(length)[..length];
        for (out, byte) in room.chunks_exact_mut(2).zip(bytes) {
            out.copy_from_slice(&LOWER[usize::from(*byte)]);
        }
        self.at += length;
    }

    /// Appends upper-case hexadecimal with `-` between bytes.
    pub(super) fn dashed_hex(&mut self, bytes: &[u8]) {
        let length = 3 * bytes.len();
        let room = &mut self.room(length)[..length];
        for (out, byte) in room.chunks_exact_mut(3).zip(bytes) {
            let [high, low] = UPPER[usize::from(*byte)];
            out.copy_from_slice(&[high, low, b'-']);
        }
        self.at += length.saturating_sub(1);
    }
}

/// Writes bytes to the front of enough room.
#[inline(always)]
fn put(room: &mut [u8], bytes: &[u8]) {
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
fn decimal(room: &mut [u8], n: u64) -> usize {
    if n < 10 {
        room[0] = b'0' + n as u8;
        1
    } else if n < 100 {
        room[..2].copy_from_slice(&PAIRS[n as usize]);
        2
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
                    let line = format!("<{before}{} {n}\n>", name.concat());
                    assert_eq!(written(|pen| pen.field(&block, lead, name, n)), line);
                }
            }
        }
    }

    #[test]
    fn bytes() {
        assert_eq!(written(|pen| pen.hex(&[0, 0xab, 0xff])), "<00abff>");
        assert_eq!(written(|pen| pen.dashed_hex(&[0, 0xab, 0xff])), "<00-AB-FF>");
        assert_eq!(written(|pen| pen.dashed_hex(&[])), "<>");
    }
}
