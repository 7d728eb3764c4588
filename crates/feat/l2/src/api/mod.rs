//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod l2_xconnect_dump;
pub mod sw_interface_set_l2_xconnect;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] =
    &[&l2_xconnect_dump::SERVICE, &sw_interface_set_l2_xconnect::SERVICE];
