//! TAP and TUN interfaces: ends of links whose other ends are devices of the kernel, for programs
//! on the same machine.
//!
//! `host` makes the kernel's device by `/dev/net/tun`, in a network namespace if wanted, and sets
//! it up; [`device`] makes it an interface, and makes it again when it was deleted or its namespace
//! is back. [`nodes`] move frames, each by one system call; the offload header makes that one call
//! for many TCP segments.

pub mod api;
mod api_types;
pub mod cli;
mod config;
pub mod device;
mod error;
mod host;
pub mod message_types;
pub mod nodes;
mod settings;
mod store;
mod sys;

pub use config::{Flags, HostSide, TapConfig};
pub use device::{
    HostChanged, HostView, ask_host, create, delete, host, place, set_carrier, set_speed,
};
pub use error::Error;

use thalweg_engine::Feature;

/// The driver.
pub static FEATURE: Feature = Feature {
    name: "tap",
    about: "TAP and TUN interfaces to this machine's kernel",
    needs: &[&thalweg_device::FEATURE],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&settings::SETTINGS],
    init: device::init,
    ready: device::ready,
    ..Feature::DEFAULT
};

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
