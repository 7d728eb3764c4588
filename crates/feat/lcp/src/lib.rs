//! Linux control plane: interfaces have twins in the kernel, for routing daemons and other programs
//! that do not know the router.
//!
//! A *pair* is an interface (VPP: *phy*) with its *twin*, a device of the kernel, and the router's
//! end of that (VPP: *host*), a TAP.
//!
//! * [`pairs`]: the pairs, by commands, messages and documents; [`table`]: as workers read them.
//! * [`nodes`]: packets to the router that it does not handle itself go to the twin as they came;
//!   packets that the kernel sends by the twin leave by the interface as written, past the features
//!   for output.
//! * [`class`], [`gate`]: punted packets have classes, each with a limit per interface.
//! * [`sync`]: the state of an interface is passed to its twin.
//! * [`routes`]: routes of the kernel over twins are the router's.
#![forbid(unsafe_code)]

pub mod api;
mod api_types;
pub mod class;
pub mod cli;
mod error;
pub mod form;
pub mod gate;
mod header;
mod make;
mod message_types;
pub mod nodes;
pub mod options;
pub mod pairs;
mod protocols;
pub mod routes;
mod section;
pub mod settings;
pub mod startup;
pub mod sync;
pub mod table;
#[cfg(test)]
mod tests;
mod turn;

pub use error::Error;
pub use make::{Wanted, create, delete};
pub use pairs::{Pair, PairView};

use thalweg_engine::Feature;
use thalweg_graph::Control;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "lcp",
    about: "Linux control plane: twins of interfaces in the kernel",
    needs: &[
        &thalweg_device::FEATURE,
        &thalweg_device_tap::FEATURE,
        &thalweg_fib::FEATURE,
        &thalweg_feat_ethernet::FEATURE,
        &thalweg_feat_arp::FEATURE,
        &thalweg_feat_ip::FEATURE,
        &thalweg_feat_ip4::FEATURE,
        &thalweg_feat_ip6::FEATURE,
        &thalweg_feat_mpls::FEATURE,
        &thalweg_feat_neighbor::FEATURE,
    ],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&section::SETTINGS],
    declared: settings::SETTINGS,
    init,
    ready: gate::ready,
    ..Feature::DEFAULT
};

fn init(c: &mut Control) {
    table::init(c);
    pairs::init(c);
    options::init(c);
    gate::init(c);
    make::init(c);
    routes::init(c);
    sync::init(c);
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
