//! The feature's nodes. This list is generated: a test rewrites it when the folder changes.

pub mod l2_input;

/// All nodes of this folder.
pub static NODES: &[&thalweg_graph::NodeDecl] = &[&l2_input::NODE];
