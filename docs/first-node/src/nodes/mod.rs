//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod drop_ttl;
pub mod drop_ttl_chosen;
pub mod drop_ttl_fast;
pub mod drop_ttl_owner;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] =
    &[&drop_ttl::NODE, &drop_ttl_chosen::NODE, &drop_ttl_fast::NODE, &drop_ttl_owner::NODE];
