//! Packets chosen by their bytes, for traces and captures.

/// Most bytes of a packet that are looked at.
pub const MAX_BYTES: usize = 128;

/// Bytes of a packet from its first header on, and which of their bits count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytePattern {
    mask: Vec<u8>,
    value: Vec<u8>,
}

impl BytePattern {
    /// Returns the pattern of the bits of `value` that are set in `mask`; bytes of either that the
    /// other lacks, and those after the first [`MAX_BYTES`], do not count.
    pub fn new(mask: &[u8], value: &[u8]) -> BytePattern {
        let mut mask = mask[..mask.len().min(value.len()).min(MAX_BYTES)].to_vec();
        while mask.last() == Some(&0) {
            mask.pop();
        }
        let value = mask.iter().zip(value).map(|(m, v)| m & v).collect();
        BytePattern { mask, value }
    }

    /// Returns true if a packet that begins with these bytes has all of them.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let each = || bytes.iter().zip(&self.mask).zip(&self.value);
        bytes.len() >= self.mask.len() && each().all(|((byte, mask), value)| byte & mask == *value)
    }

    /// Returns the bits that count.
    pub fn mask(&self) -> &[u8] {
        &self.mask
    }

    /// Returns their values.
    pub fn value(&self) -> &[u8] {
        &self.value
    }
}

/// Patterns of which a packet has to match one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteFilter(pub Vec<BytePattern>);

impl ByteFilter {
    /// Returns true if a packet that begins with these bytes matches.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|pattern| pattern.matches(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_bits_count() {
        let pattern = BytePattern::new(&[0, 0xff, 0xf0, 0], &[9, 7, 0x4f, 3]);
        assert_eq!((pattern.mask(), pattern.value()), (&[0, 0xff, 0xf0][..], &[0, 7, 0x40][..]));
        assert!(pattern.matches(&[1, 7, 0x45]) && pattern.matches(&[0, 7, 0x40, 9]));
        assert!(!pattern.matches(&[1, 7, 0x55]) && !pattern.matches(&[1, 7]));
        let other = BytePattern::new(&[0xff], &[1]);
        let filter = ByteFilter(vec![pattern, other]);
        assert!(filter.matches(&[1]) && filter.matches(&[2, 7, 0x4a]) && !filter.matches(&[2]));
        assert!(!ByteFilter::default().matches(&[1]));
        assert_eq!(BytePattern::new(&[0xff; 300], &[1; 300]).mask().len(), MAX_BYTES);
    }
}
