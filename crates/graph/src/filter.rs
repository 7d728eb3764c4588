//! Packets chosen by their bytes, for traces and captures.

/// Most bytes of a packet that are looked at.
pub const MAX_BYTES: usize = 160;

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

/// Patterns of which a packet has to match one. A look-up costs one search per mask, however many
/// values it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteFilter(Vec<Masked>);

/// Patterns with the same mask.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Masked {
    mask: Vec<u8>,
    /// Values in order.
    values: Vec<Vec<u8>>,
}

impl ByteFilter {
    /// Returns the filter of these patterns.
    pub fn new(patterns: impl IntoIterator<Item = BytePattern>) -> ByteFilter {
        let mut all: Vec<BytePattern> = patterns.into_iter().collect();
        all.sort_by(|a, b| (&a.mask, &a.value).cmp(&(&b.mask, &b.value)));
        all.dedup();
        let mut masks: Vec<Masked> = Vec::new();
        for BytePattern { mask, value } in all {
            match masks.last_mut().filter(|last| last.mask == mask) {
                Some(last) => last.values.push(value),
                None => masks.push(Masked { mask, values: vec![value] }),
            }
        }
        ByteFilter(masks)
    }

    /// Returns true if there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a packet that begins with these bytes matches.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|of| {
            let n = of.mask.len();
            let Some(bytes) = bytes.get(..n) else { return false };
            let mut key = [0; MAX_BYTES];
            for ((to, byte), mask) in key.iter_mut().zip(bytes).zip(&of.mask) {
                *to = byte & mask;
            }
            of.values.binary_search_by(|value| value[..].cmp(&key[..n])).is_ok()
        })
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
        let filter = ByteFilter::new([pattern, other]);
        assert!(filter.matches(&[1]) && filter.matches(&[2, 7, 0x4a]) && !filter.matches(&[2]));
        assert!(!ByteFilter::default().matches(&[1]) && !ByteFilter::default().matches(&[]));
        let all = ByteFilter::new([BytePattern::new(&[0], &[0])]);
        assert!(all.matches(&[]) && all.matches(&[9]));
        assert_eq!(BytePattern::new(&[0xff; 300], &[1; 300]).mask().len(), MAX_BYTES);
    }
    #[test]
    fn many_values_are_as_patterns_one_by_one() {
        let patterns: Vec<BytePattern> = (0..200u8)
            .map(|i| BytePattern::new(&[0, 0xff, if i % 3 == 0 { 0xf0 } else { 0 }], &[9, i, i]))
            .collect();
        let filter = ByteFilter::new(patterns.iter().rev().cloned());
        assert_eq!(filter.0.len(), 2);
        for a in 0..=255u8 {
            for b in [0, a, a ^ 0xff, a & 0xf0] {
                for bytes in [&[1, a, b][..], &[1, a]] {
                    let one_by_one = patterns.iter().any(|p| p.matches(bytes));
                    assert_eq!(filter.matches(bytes), one_by_one, "{bytes:?}");
                }
            }
        }
    }
}
