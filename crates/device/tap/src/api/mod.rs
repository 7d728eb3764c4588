//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod sw_interface_tap_v2_dump;
pub mod tap_create_v2;
pub mod tap_create_v3;
pub mod tap_delete_v2;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &sw_interface_tap_v2_dump::SERVICE,
    &tap_create_v2::SERVICE,
    &tap_create_v3::SERVICE,
    &tap_delete_v2::SERVICE,
];
