//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod tap_input;
pub mod tap_tx;
pub mod tun_input;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] =
    &[&tap_input::NODE, &tap_tx::NODE, &tun_input::NODE];
