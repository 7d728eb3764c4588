//! The configuration as a whole: shown, planned, applied, saved, confirmed, rolled back.
//!
//! What there is to configure is said by the sections of other features
//! (`thalweg_config::declare`); this one knows none of them.
//!
//! * [`apply`]: the way from what is to what shall be, one command after the other, and back if one
//!   fails.
//! * [`store`]: the file that the router keeps, and its revisions.
//! * [`manager`]: what the main thread knows of these.
//! * `work`: what is done beside the main thread, or on it in slices.
#![forbid(unsafe_code)]

pub mod apply;
pub mod cli;
mod cli_support;
pub mod manager;
pub mod store;
mod work;

pub use apply::{Mode, apply_at_start};
pub use manager::{ConfigError, Manager};

use thalweg_graph::Feature;

/// The feature. To be listed last: it must know what all others have.
pub static FEATURE: Feature = Feature {
    name: "configuration",
    about: "configuration as a document: plan, apply, save, roll back",
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
