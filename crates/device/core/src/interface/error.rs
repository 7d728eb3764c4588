//! Reason why an operation on an interface failed.

use super::TagMatch;
use thalweg_graph::stats::MAX_INTERFACES;

/// Reason why an operation on an interface failed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DeviceError {
    /// The interface does not exist.
    #[error("unknown interface `{0}`")]
    Unknown(String),
    /// The name is in use.
    #[error("interface `{0}` already exists")]
    Exists(String),
    /// The table is full.
    #[error("no room for another interface: the limit is {MAX_INTERFACES}")]
    Full,
    /// The driver does not support the operation.
    #[error("interface `{name}` ({kind}): {what} is not supported")]
    Unsupported {
        /// Name of the interface.
        name: String,
        /// Device type.
        kind: String,
        /// The operation.
        what: String,
    },
    /// A value is out of range.
    #[error("{what} must be between {min} and {max}, not {found}")]
    Range {
        /// Name of the value.
        what: &'static str,
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
        /// Value given.
        found: u64,
    },
    /// Another sub-interface receives these frames.
    #[error("`{name}` receives the frames with tags {matches} already")]
    TagsInUse {
        /// Its name.
        name: String,
        /// The tags.
        matches: TagMatch,
    },
    /// A tag rewrite removes tags that the interface's frames need not have.
    #[error("`{name}` is known by {has} VLAN tags: a rewrite cannot remove {pop}")]
    TooFewTags {
        /// Name of the interface.
        name: String,
        /// Number of tags that all its frames have.
        has: usize,
        /// Number of tags to remove.
        pop: u8,
    },
    /// The system or the driver failed.
    #[error("{0}")]
    Failed(String),
}

impl DeviceError {
    /// Return code for the binary API.
    pub fn code(&self) -> i32 {
        match self {
            DeviceError::Unknown(_) => -2,
            DeviceError::Exists(_) => -81,
            DeviceError::Range { .. } => -7,
            DeviceError::Unsupported { .. } => -126,
            DeviceError::Full => -162,
            DeviceError::TagsInUse { .. } => -56,
            DeviceError::TooFewTags { .. } => -72,
            DeviceError::Failed(_) => -1,
        }
    }
}
