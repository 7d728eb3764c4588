//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod pg_capture;
pub mod pg_create_interface;
pub mod pg_create_interface_v2;
pub mod pg_create_interface_v3;
pub mod pg_delete_interface;
pub mod pg_enable_disable;
pub mod pg_interface_enable_disable_coalesce;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] = &[
    &pg_capture::SERVICE,
    &pg_create_interface::SERVICE,
    &pg_create_interface_v2::SERVICE,
    &pg_create_interface_v3::SERVICE,
    &pg_delete_interface::SERVICE,
    &pg_enable_disable::SERVICE,
    &pg_interface_enable_disable_coalesce::SERVICE,
];
