//! Errors of parsing and emitting headers.

use core::fmt;

/// The result of parsing or emitting a header.
pub type Result<T> = core::result::Result<T, WireError>;

/// Error of parsing or emitting a header.
///
/// `what` names the format, as in "IPv4 header".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The bytes end before the header does.
    Truncated {
        /// The format.
        what: &'static str,
        /// Bytes required.
        need: usize,
        /// Bytes available.
        have: usize,
    },
    /// The version field holds another version.
    BadVersion {
        /// The format.
        what: &'static str,
        /// The version found.
        found: u8,
        /// The only version that is supported.
        want: u8,
    },
    /// The header's own length field is below the minimum, or above what its container allows.
    BadHeaderLength {
        /// The format.
        what: &'static str,
        /// The length found, in bytes.
        length: usize,
    },
    /// The length of the whole packet does not fit its header or the available bytes.
    BadTotalLength {
        /// The format.
        what: &'static str,
        /// The length found, in bytes.
        length: usize,
        /// Bytes available.
        have: usize,
    },
    /// The checksum does not match.
    BadChecksum {
        /// The format.
        what: &'static str,
        /// The checksum in the packet.
        found: u16,
        /// The correct checksum.
        want: u16,
    },
    /// A field holds a value that this format does not allow, or that is not supported.
    BadField {
        /// The format and its field.
        what: &'static str,
        /// The value found.
        found: u32,
    },
    /// The buffer is too small to write the header into.
    NoRoom {
        /// The format.
        what: &'static str,
        /// Bytes required.
        need: usize,
        /// Bytes available.
        have: usize,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { what, need, have } => {
                write!(f, "{what}: truncated, needs {need} bytes and has {have}")
            }
            Self::BadVersion { what, found, want } => {
                write!(f, "{what}: version {found} instead of {want}")
            }
            Self::BadHeaderLength { what, length } => {
                write!(f, "{what}: impossible header length of {length} bytes")
            }
            Self::BadTotalLength { what, length, have } => {
                write!(f, "{what}: length field says {length} bytes where {have} are there")
            }
            Self::BadChecksum { what, found, want } => {
                write!(f, "{what}: checksum {found:#06x} should be {want:#06x}")
            }
            Self::BadField { what, found } => {
                write!(f, "{what}: value {found:#x} is not supported")
            }
            Self::NoRoom { what, need, have } => {
                write!(f, "{what}: needs a buffer of {need} bytes, got {have}")
            }
        }
    }
}

impl core::error::Error for WireError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn messages_name_found_and_valid_values() {
        let e = WireError::Truncated { what: "UDP header", need: 8, have: 3 };
        assert_eq!(e.to_string(), "UDP header: truncated, needs 8 bytes and has 3");
        let e = WireError::BadChecksum { what: "IPv4 header", found: 0x12, want: 0xabcd };
        assert_eq!(e.to_string(), "IPv4 header: checksum 0x0012 should be 0xabcd");
    }
}
