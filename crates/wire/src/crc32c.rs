//! CRC-32C, the checksum of SCTP (RFC 9260 appendix A).

/// The polynomial, with its lowest power in the highest bit.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// `x` to the power of zero, written the same way.
const ONE: u32 = 1 << 31;

/// The change of a remainder by a byte that is followed by as many others as the table's number.
static TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut rest, mut bit) = (byte as u32, 0);
        while bit < 8 {
            rest = times_x(rest);
            bit += 1;
        }
        tables[0][byte] = rest;
        byte += 1;
    }
    let mut n = 1;
    while n < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[n - 1][byte];
            tables[n][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        n += 1;
    }
    tables
};

/// `x` to the powers of two.
static POWERS: [u32; 32] = {
    let mut powers = [ONE >> 1; 32];
    let mut n = 1;
    while n < 32 {
        powers[n] = product(powers[n - 1], powers[n - 1]);
        n += 1;
    }
    powers
};

const fn times_x(rest: u32) -> u32 {
    if rest & 1 == 1 { rest >> 1 ^ POLYNOMIAL } else { rest >> 1 }
}

/// The product of two remainders.
const fn product(a: u32, mut b: u32) -> u32 {
    let (mut sum, mut bit) = (0, ONE);
    while bit != 0 {
        if a & bit != 0 {
            sum ^= b;
        }
        b = times_x(b);
        bit >>= 1;
    }
    sum
}

/// The remainder after `bytes` more bytes of zero.
fn shifted(rest: u32, bytes: usize) -> u32 {
    let (mut left, mut factor) = (bytes, ONE);
    // A byte is x to the power of 8, the third power of two.
    for power in POWERS.iter().skip(3) {
        if left & 1 == 1 {
            factor = product(*power, factor);
        }
        left >>= 1;
    }
    product(factor, rest)
}

fn divided(mut rest: u32, data: &[u8]) -> u32 {
    let (words, tail) = data.as_chunks::<8>();
    for word in words {
        let [a, b, c, d, e, f, g, h] = *word;
        let low = rest ^ u32::from_le_bytes([a, b, c, d]);
        let at = |table: usize, byte: u32| TABLES[table][(byte & 0xff) as usize];
        rest = at(7, low) ^ at(6, low >> 8) ^ at(5, low >> 16) ^ at(4, low >> 24);
        rest ^= at(3, e.into()) ^ at(2, f.into()) ^ at(1, g.into()) ^ at(0, h.into());
    }
    for byte in tail {
        rest = rest >> 8 ^ TABLES[0][((rest ^ u32::from(*byte)) & 0xff) as usize];
    }
    rest
}

/// A CRC over any number of pieces.
#[derive(Clone, Copy, Debug)]
pub struct Crc32c(u32);

impl Default for Crc32c {
    fn default() -> Self {
        Crc32c(u32::MAX)
    }
}

impl Crc32c {
    /// Adds the next piece.
    pub fn add(&mut self, data: &[u8]) {
        self.0 = divided(self.0, data);
    }

    /// The CRC, as SCTP sends it: the lowest byte first.
    pub fn finish(self) -> [u8; 4] {
        (!self.0).to_le_bytes()
    }
}

/// The CRC, as SCTP sends it, after four bytes have changed that are followed by `behind` others. A
/// wrong CRC stays wrong.
pub fn replaced(crc: [u8; 4], old: [u8; 4], new: [u8; 4], behind: usize) -> [u8; 4] {
    // The CRC of a sum is the sum of CRCs, up to the constant that begins and ends it.
    let differ = u32::from_le_bytes(old) ^ u32::from_le_bytes(new);
    let change = shifted(divided(0, &differ.to_le_bytes()), behind);
    (u32::from_le_bytes(crc) ^ change).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn crc(data: &[u8]) -> [u8; 4] {
        let mut crc = Crc32c::default();
        crc.add(data);
        crc.finish()
    }

    /// Values of RFC 3720 appendix B.4, and the usual check value.
    #[test]
    fn known_values() {
        assert_eq!(crc(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(crc(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(crc(&up), [0x4e, 0x79, 0xdd, 0x46]);
        assert_eq!(crc(b"123456789"), 0xe306_9283_u32.to_le_bytes());
    }

    proptest! {
        #[test]
        fn pieces_make_the_whole(data in prop::collection::vec(any::<u8>(), 0..100), at: prop::sample::Index) {
            let at = at.index(data.len() + 1);
            let mut pieces = Crc32c::default();
            pieces.add(&data[..at]);
            pieces.add(&data[at..]);
            prop_assert_eq!(pieces.finish(), crc(&data));
        }

        #[test]
        fn a_change_is_followed(
            data in prop::collection::vec(any::<u8>(), 4..3000), new: [u8; 4], at: prop::sample::Index,
        ) {
            let at = at.index(data.len() - 3);
            let mut after = data.clone();
            after[at..at + 4].copy_from_slice(&new);
            let old: [u8; 4] = data[at..at + 4].try_into().unwrap();
            prop_assert_eq!(replaced(crc(&data), old, new, data.len() - at - 4), crc(&after));
        }
    }
}
