//! Every setting of this folder, one per file.
//!
//! Generated from the files' names by a unit test, which keeps it current: add a
//! file, then run the tests twice.

pub mod auto_subint;
pub mod fpm;
pub mod fpm_hold;
pub mod sync;
pub mod sync_unnumbered;

/// Every setting, in the order of the files' names.
pub static SETTINGS: &[&dyn thalweg_engine::setting::Declared] = &[
    &auto_subint::SETTING,
    &fpm::SETTING,
    &fpm_hold::SETTING,
    &sync::SETTING,
    &sync_unnumbered::SETTING,
];
