//! The engine's own nodes. This list is generated: a test rewrites it when the folder changes.

pub mod drop;
pub mod error_drop;

/// All nodes of this folder.
pub static NODES: &[&crate::decl::NodeDecl] = &[&drop::NODE, &error_drop::NODE];
