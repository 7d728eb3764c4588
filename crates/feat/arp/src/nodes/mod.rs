//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod arp_input;
pub mod arp_reply;
pub mod ip4_arp;
pub mod ip4_glean;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] =
    &[&arp_input::NODE, &arp_reply::NODE, &ip4_arp::NODE, &ip4_glean::NODE];
