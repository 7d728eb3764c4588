//! Every graph node of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod nat44_ed_classify;
pub mod nat44_ed_hairpin;
pub mod nat44_ed_icmp_error;
pub mod nat44_ed_in2out;
pub mod nat44_ed_in2out_output;
pub mod nat44_ed_out2in;
pub mod nat44_ed_ticker;

/// Every graph node, in the order of the files' names.
pub static NODES: &[&thalweg_graph::NodeDecl] = &[
    &nat44_ed_classify::NODE,
    &nat44_ed_hairpin::NODE,
    &nat44_ed_icmp_error::NODE,
    &nat44_ed_in2out::NODE,
    &nat44_ed_in2out_output::NODE,
    &nat44_ed_out2in::NODE,
    &nat44_ed_ticker::NODE,
];
