//! The configuration as a whole: shown, planned, applied, saved, confirmed, rolled back.
//!
//! Sections of other features declare all settings (`thalweg_config::declare`); this feature knows
//! none of them.
//!
//! * [`apply`]: applying a document, one command after the other, with rollback on failure.
//! * [`store`]: the router's configuration file and its revisions.
//! * [`manager`]: their state on the main thread.
//! * `work`: tasks that run off the main thread, or on it in slices.
#![forbid(unsafe_code)]

pub mod apply;
pub mod cli;
mod cli_support;
pub mod manager;
mod progress;
pub mod store;
mod work;

pub use apply::{Mode, apply_at_start};
pub use manager::{ConfigError, Manager};

use thalweg_engine::Feature;

/// The feature. To be listed last, after all features with sections.
pub static FEATURE: Feature = Feature {
    name: "configuration",
    about: "configuration as a document: plan, apply, save, roll back",
    needs: &[&thalweg_device::FEATURE],
    commands: cli::COMMANDS,
    init: manager::init,
    ready: manager::ready,
    ..Feature::DEFAULT
};

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
