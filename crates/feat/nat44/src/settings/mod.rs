//! Every setting of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod forwarding;
pub mod log;
pub mod mss_clamping;
pub mod port_assignment;
pub mod table_full;
pub mod workers;

/// Every setting, in the order of the files' names.
pub static SETTINGS: &[&dyn thalweg_engine::setting::Declared] = &[
    &forwarding::SETTING,
    &log::SETTING,
    &mss_clamping::SETTING,
    &port_assignment::SETTING,
    &table_full::SETTING,
    &workers::SETTING,
];
