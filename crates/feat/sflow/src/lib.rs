//! sFlow in the dataplane: packets are sampled by a tap, exported by a thread.
//!
//! * [`nodes::sflow`]: the tap on `device-input`. Per worker and interface it counts down to the
//!   next sample; a frame without one costs a compare.
//! * [`ring`]: the sample ring from a worker to the service, one per worker.
//! * [`service`]: the thread that drains the rings, polls interface counters and feeds the agent.
//! * [`exporting`]: settings of the agent.
//! * [`netlink`]: export over netlink to an agent on this host.
//! * [`state`]: settings on the main thread, and what [`cli`] calls to change them.
//!
//! An interface has one number in all that is sent: its `sw_if_index`.
#![forbid(unsafe_code)]

pub mod api;
mod api_module;
pub mod cli;
mod cli_support;
mod drops;
pub mod exporting;
mod head;
pub mod message_types;
pub mod netlink;
pub mod nodes;
mod pending;
pub mod reasons;
pub mod record;
pub mod ring;
pub mod sampler;
mod section;
mod segments;
pub mod service;
pub mod settings;
pub mod state;
pub mod stats;

pub use state::{Direction, SFlow, SFlowError, Settings};

use thalweg_engine::Feature;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "sflow",
    about: "packet sampling and interface counters, sFlow v5",
    needs: &[&thalweg_device::FEATURE, &thalweg_fib::FEATURE],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&section::SECTION],
    declared: settings::SETTINGS,
    init: state::init,
    ready: state::ready,
    ..Feature::DEFAULT
};

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
