//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod interface_output;
pub mod null_tx;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] = &[&interface_output::NODE, &null_tx::NODE];
