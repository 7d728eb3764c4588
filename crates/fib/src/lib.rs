//! Forwarding objects (VPP: DPOs): adjacencies (the link header to write, and the interface),
//! groups that share load over several of them, midchains of tunnels, and special routes (local,
//! drop, unreachable …).
//!
//! * [`dpo`]: the table that workers read, one cache line per entry, changed in place by
//!   single-word stores.
//! * [`counters`]: packets by object.
//! * [`kind`]: kinds of objects, and link types.
//! * [`mod@routes`]: lookups in the protocols' route tables, for descriptions of packets.
//! * [`path_text`]: paths of routes and labels as they are written.
//! * [`path_words`]: the grammar by which they are read.
//! * [`rib`]: route tables of any family.
//! * [`forwarding`]: the main thread's side: references to entries, neighbours, interfaces.
#![forbid(unsafe_code)]

mod adjacency;
mod buckets;
pub mod cli;
pub mod counters;
pub mod dpo;
pub mod forwarding;
mod group;
pub mod kind;
pub mod label_text;
mod parked;
pub mod path_text;
pub mod path_words;
pub mod rib;
pub mod routes;
pub mod settings;
mod version;
mod via_label;

pub use adjacency::{Adjacency, AdjacencyKey, Imposed, Midchain, Peer};
pub use counters::{Combined, Counted, Counts, ObjectCounters};
pub use dpo::{
    Dpo, DpoTable, ETHERNET_HEADER, Entry, EntryState, LinkRewrite, MAX_BUCKETS, MAX_REWRITE,
    REWRITE_BYTES,
};
pub use forwarding::{FibError, Forwarding, Unresolved};
pub use group::{MAX_DEPTH, Member};
pub use kind::{Kind, KindDecl, LinkType};
pub use label_text::{label_of, label_text, via_label_of};
pub use parked::Parked;
pub use path_text::{LookIn, PathText, Place};
pub use rib::{TableId, WatchedRoutes};
pub use routes::{LabelStep, RouteBook, Routes};
pub use version::Version;
pub use via_label::{ViaLabel, ViaLabelsDue};

use thalweg_engine::Feature;

/// The feature: adjacencies and load balance.
pub static FEATURE: Feature = Feature {
    name: "fib",
    about: "adjacencies and load balance",
    needs: &[&thalweg_device::FEATURE],
    commands: cli::COMMANDS,
    declared: settings::SETTINGS,
    init: Forwarding::init,
    ready: Forwarding::ready,
    ..Feature::DEFAULT
};

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
