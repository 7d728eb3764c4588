//! A first feature: drops IPv4 packets whose TTL is 13.
#![forbid(unsafe_code)]

pub mod cli;
pub mod nodes;
pub mod settings;
pub mod unlucky;

use thalweg_engine::Feature;
use thalweg_graph::Control;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "first",
    about: "drops packets with an unlucky TTL",
    needs: &[&thalweg_device::FEATURE],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    declared: settings::SETTINGS,
    init,
    ..Feature::DEFAULT
};

fn init(c: &mut Control) {
    unlucky::init(c);
    // Before the start this cannot fail; the start reports a missing node.
    let _ = c.add_hand_off("drop-ttl-handoff", "drop-ttl");
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
