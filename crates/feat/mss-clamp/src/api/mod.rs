//! Every API message of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod mss_clamp_enable_disable;
pub mod mss_clamp_get;

/// Every API message, in the order of the files' names.
pub static SERVICES: &[&dyn thalweg_api::Service<thalweg_graph::Control>] =
    &[&mss_clamp_enable_disable::SERVICE, &mss_clamp_get::SERVICE];
