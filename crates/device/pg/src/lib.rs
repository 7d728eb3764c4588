//! The packet generator: ports without hardware, streams received on them, and captures of packets
//! transmitted by them, in the syntax of VPP's.
//!
//! * [`grammar`]: packet descriptions; [`template`]: packets from them; [`pcap`]: packets from
//!   files.
//! * [`stream`]: ports, streams and captures on the main thread.
//! * [`capture`]: captures written to files without a worker waiting for a disk.
//! * [`nodes`]: `pg-input`, which generates; [`port`]: the transmit node.
#![forbid(unsafe_code)]

pub mod api;
mod api_types;
pub mod capture;
pub mod cli;
mod command_line;
mod error;
pub mod grammar;
pub mod message_types;
pub mod nodes;
pub mod pcap;
pub mod port;
mod scan;
mod settings;
mod source;
pub mod stream;
pub mod template;

pub use error::PgError;
pub use stream::{
    Data, Mode, StreamChange, StreamSpec, change_stream, create_port, define_stream, delete_port,
    delete_stream, enable_streams, set_capture,
};

use thalweg_engine::Feature;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "packet-generator",
    about: "packet generator: streams, ports and captures",
    needs: &[&thalweg_device::FEATURE],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&settings::SETTINGS],
    init: stream::Pg::init,
    ..Feature::DEFAULT
};

#[cfg(test)]
mod tests;
