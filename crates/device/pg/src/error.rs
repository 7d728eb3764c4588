//! What can go wrong, in words for the person who asked.

use thalweg_device::DeviceError;

/// Why the packet generator refused something.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PgError {
    /// The packet description does not follow the grammar.
    #[error("packet data: expected {expected}, found `{found}'")]
    Data {
        /// What would be right.
        expected: String,
        /// What stood there.
        found: String,
    },
    /// A range whose end lies before its beginning, or a value that its field cannot hold.
    #[error("packet data: {what} must go up and fit into {bits} bits: {low:#x} - {high:#x}")]
    Range {
        /// Which field.
        what: String,
        /// Its width.
        bits: usize,
        /// The first value.
        low: u64,
        /// The last value.
        high: u64,
    },
    /// The size does not suit the headers.
    #[error(
        "size {min}-{max}: packets of this stream can have {least} to {most} bytes, and the \
         second number must not be the smaller one"
    )]
    Size {
        /// The least that was asked for.
        min: usize,
        /// The greatest that was asked for.
        max: usize,
        /// What the headers need.
        least: usize,
        /// What an IP packet can have.
        most: usize,
    },
    /// A stream of that name does not exist.
    #[error("no stream is called `{0}'; `show packet-generator' lists them")]
    NoStream(String),
    /// A name that is no packet generator's port.
    #[error(
        "`{0}' is no packet-generator interface; `create packet-generator interface pg0' makes one"
    )]
    NoPort(String),
    /// A node that does not exist.
    #[error("`{0}' is neither a node nor an interface; `show vlib graph' lists the nodes")]
    NoNode(String),
    /// An IP port without the feature that takes its packets.
    #[error("{mode} mode needs node `{node}', which no loaded feature brings")]
    NoInput {
        /// The mode.
        mode: &'static str,
        /// The node.
        node: &'static str,
    },
    /// A worker that does not exist.
    #[error("worker {found}: workers are numbered from 0, and there are {workers}")]
    NoWorker {
        /// What was asked for.
        found: usize,
        /// How many there are.
        workers: usize,
    },
    /// Neither `data` nor `pcap`, or both.
    #[error("stream `{0}': give its packets either by `data {{ ... }}' or by `pcap FILE'")]
    NoData(String),
    /// A change that a running stream cannot take.
    #[error("stream `{0}' is enabled: `packet-generator disable-stream {0}' first")]
    Running(String),
    /// A file that cannot be read or is no capture.
    #[error("pcap file `{path}': {why}")]
    Pcap {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The registry of interfaces refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
