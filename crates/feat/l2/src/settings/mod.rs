//! Every setting of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod efp_filter;

/// Every setting, in the order of the files' names.
pub static SETTINGS: &[&dyn thalweg_engine::setting::Declared] = &[&efp_filter::SETTING];
