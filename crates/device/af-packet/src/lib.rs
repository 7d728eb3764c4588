//! Host interfaces: Linux network devices driven through `AF_PACKET` rings.
//!
//! [`ring`] opens sockets on a device and moves frames through memory shared with the kernel
//! (`PACKET_RX_RING`, `PACKET_TX_RING`). The module does not depend on the packet engine;
//! [`device`] and [`nodes`] put it into the graph.
//!
//! Sockets belong to the network namespace of the thread that opens them.

pub mod api;
mod api_types;
pub mod cli;
pub mod device;
mod error;
pub mod message_types;
pub mod nodes;
pub mod ring;
mod settings;
mod sys;

pub(crate) use device::DEV_TYPE;
pub use device::{HostConfig, create, delete, set_checksum_offload, set_qdisc_bypass};
pub use error::Error;

use thalweg_engine::Feature;

/// The driver.
pub static FEATURE: Feature = Feature {
    name: "af_packet",
    about: "host interfaces on AF_PACKET rings",
    needs: &[&thalweg_device::FEATURE],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&settings::SETTINGS],
    init: device::init,
    ..Feature::DEFAULT
};

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
