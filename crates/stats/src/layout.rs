//! Version 2 of the layout, in words of eight bytes, in native byte order.

/// Version of the layout.
pub(crate) const VERSION: u64 = 2;

/// Base of addresses in the segment. Clients only ever subtract it.
pub(crate) const BASE: u64 = 1 << 40;

/// Words of the header.
pub(crate) mod header {
    pub const VERSION: usize = 0;
    pub const BASE: usize = 1;
    pub const EPOCH: usize = 2;
    pub const IN_PROGRESS: usize = 3;
    pub const DIRECTORY: usize = 4;
    /// Includes a word that some clients take for another pointer, which stays 0.
    pub const WORDS: usize = 8;
}

/// Words of an entry of the directory.
pub(crate) mod entry {
    pub const TYPE: usize = 0;
    pub const VALUE: usize = 1;
    pub const NAME: usize = 2;
    pub const WORDS: usize = 18;
    /// Bytes of a name, including its NUL.
    pub const NAME_BYTES: usize = (WORDS - NAME) * 8;
}

/// Type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Type {
    Scalar = 1,
    Simple = 2,
    Combined = 3,
    Names = 4,
    Empty = 5,
    Link = 6,
    Gauge = 9,
}

/// Returns the address of a word.
pub(crate) fn address(word: usize) -> u64 {
    BASE + 8 * word as u64
}

/// Returns bytes as words, the last padded with zeros.
pub(crate) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    })
}
