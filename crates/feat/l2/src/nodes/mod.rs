//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod arp_term_l2bd;
pub mod bvi_end_of_arc;
pub mod bvi_input;
pub mod bvi_output;
pub mod l2_efp_filter;
pub mod l2_flood;
pub mod l2_fwd;
pub mod l2_input;
pub mod l2_input_vtr;
pub mod l2_learn;
pub mod l2_output;
pub mod l2_uu_fwd;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] = &[
    &arp_term_l2bd::NODE,
    &bvi_end_of_arc::NODE,
    &bvi_input::NODE,
    &bvi_output::NODE,
    &l2_efp_filter::NODE,
    &l2_flood::NODE,
    &l2_fwd::NODE,
    &l2_input::NODE,
    &l2_input_vtr::NODE,
    &l2_learn::NODE,
    &l2_output::NODE,
    &l2_uu_fwd::NODE,
];
