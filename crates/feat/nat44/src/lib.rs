//! Endpoint-dependent NAT44: inside hosts share external addresses (RFC 3022, 4787, 5382, 5508).
//!
//! * [`thalweg_wire::nat`]: keys, checksums, packets;
//! * [`session`], [`ports`], [`mapping`]: session values, free ports, static mappings;
//! * [`worker`]: a worker's own sessions;
//! * [`state`]: the configuration on the main thread;
//! * `translate`, [`nodes`], [`cli`]: nodes and commands.
//!
//! A session belongs to one worker, determined by the inside host. External ports are divided among
//! workers, so that the port of a reply identifies the worker.
#![forbid(unsafe_code)]

pub mod api;
mod api_types;
pub mod cli;
mod cli_args;
mod cli_support;
mod config;
pub mod counters;
mod direction;
mod egress;
mod events;
#[doc(hidden)]
pub mod fuzzing;
mod kernel;
pub mod limits;
pub mod log;
pub mod mapping;
mod mapping_words;
pub mod message_types;
mod node;
pub mod nodes;
mod owners;
pub mod pool;
pub mod ports;
pub mod restore;
pub mod saved;
mod section;
pub mod session;
pub mod settings;
pub mod state;
pub mod store;
mod time;
mod translate;
pub mod view;
mod waiting;
pub mod worker;

pub use config::{Config, Timeouts};
pub use state::{Nat44, NatError};
pub use view::SessionView;

use std::sync::Arc;
use thalweg_engine::Feature;
use thalweg_graph::Control;
use thalweg_tables::snapshot::{self, Snapshot};

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "nat44",
    about: "network address translation, IPv4 to IPv4, endpoint dependent",
    needs: &[
        &thalweg_device::FEATURE,
        &thalweg_fib::FEATURE,
        &thalweg_feat_arp::FEATURE,
        &thalweg_feat_ip::FEATURE,
        &thalweg_feat_ip4::FEATURE,
    ],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&section::SECTION],
    declared: settings::SETTINGS,
    end: store::save_at_end,
    init,
    ..Feature::DEFAULT
};

fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(Config::default());
    let snapshot: Arc<Snapshot<Config>> = snapshot;
    c.share(snapshot);
    c.insert(Nat44::new(writer));
    c.share(Arc::new(counters::Counters::new(c.config().workers.len())));
    let refused = c.topic("nat44-refused", events::refused);
    c.share(Arc::new(events::Topics { refused }));
    for (queue, node) in direction::QUEUES {
        // Before the start this cannot fail; the start reports missing nodes.
        let _ = c.add_hand_off(queue, node);
    }
    state::follow_interfaces(c);
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
