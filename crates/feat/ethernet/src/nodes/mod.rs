//! The feature's nodes. This list is generated: a test rewrites it when the folder changes.

pub mod ethernet_input;

/// All nodes of this folder.
pub static NODES: &[&thalweg_graph::NodeDecl] = &[&ethernet_input::NODE];
