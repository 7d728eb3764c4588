//! Errors of the packet generator.

use thalweg_device::DeviceError;

/// Reason why a packet generator request failed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PgError {
    /// The packet description does not follow the grammar.
    #[error("packet data: expected {expected}, found `{found}'")]
    Data {
        /// The expected word or value.
        expected: String,
        /// The text found in its place.
        found: String,
    },
    /// A range that does not increase, or a value too large for its field.
    #[error("packet data: {what} must increase and fit into {bits} bits: {low:#x} - {high:#x}")]
    Range {
        /// Name of the field.
        what: String,
        /// Its width in bits.
        bits: usize,
        /// First value.
        low: u64,
        /// Last value.
        high: u64,
    },
    /// The size does not fit the headers.
    #[error(
        "size {min}-{max}: packets of this stream can have {least} to {most} bytes, and the \
         second number must not be the smaller one"
    )]
    Size {
        /// Minimum given.
        min: usize,
        /// Maximum given.
        max: usize,
        /// Minimum required by the headers.
        least: usize,
        /// Maximum of an IP packet.
        most: usize,
    },
    /// The stream does not exist.
    #[error("no stream `{0}'; `show packet-generator' lists them")]
    NoStream(String),
    /// The interface is not a port.
    #[error(
        "`{0}' is not a packet-generator interface; `create packet-generator interface pg0' makes one"
    )]
    NoPort(String),
    /// The node does not exist.
    #[error("`{0}' is neither a node nor an interface; `show vlib graph' lists the nodes")]
    NoNode(String),
    /// No feature takes packets of an IP mode.
    #[error("{mode} mode needs node `{node}', which no loaded feature provides")]
    NoInput {
        /// Mode.
        mode: &'static str,
        /// Node.
        node: &'static str,
    },
    /// The worker does not exist.
    #[error("worker {found}: there are {workers} workers, numbered from 0")]
    NoWorker {
        /// Worker given.
        found: usize,
        /// Number of workers.
        workers: usize,
    },
    /// The request has neither or both of `data` and `pcap`.
    #[error("stream `{0}': specify its packets either by `data {{ ... }}' or by `pcap FILE'")]
    NoData(String),
    /// A running stream cannot be changed.
    #[error("stream `{0}' is enabled: `packet-generator disable-stream {0}' first")]
    Running(String),
    /// The file cannot be read or is not a capture.
    #[error("pcap file `{path}': {why}")]
    Pcap {
        /// Path of the file.
        path: String,
        /// Reason.
        why: String,
    },
    /// The interface registry failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
