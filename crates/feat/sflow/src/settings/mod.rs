//! Every setting of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod agent_address;
pub mod datagram_bytes;
pub mod direction;
pub mod header_bytes;
pub mod host_interval;
pub mod netlink;
pub mod polling_interval;
pub mod sampling_rate;
pub mod sub_agent;
pub mod sub_interfaces;
pub mod uuid;

/// Every setting, in the order of the files' names.
pub static SETTINGS: &[&dyn thalweg_engine::setting::Declared] = &[
    &agent_address::SETTING,
    &datagram_bytes::SETTING,
    &direction::SETTING,
    &header_bytes::SETTING,
    &host_interval::SETTING,
    &netlink::SETTING,
    &polling_interval::SETTING,
    &sampling_rate::SETTING,
    &sub_agent::SETTING,
    &sub_interfaces::SETTING,
    &uuid::SETTING,
];
