//! Neighbours of all address families: the table, packets that wait, and the commands and messages.
//!
//! Workers report senders, and hold packets for unresolved neighbours; only the main thread owns
//! the table. The main thread completes adjacencies in place, so that packets after the first never
//! see this crate.
//!
//! The protocol of a family is a feature of its own, which contributes
//!
//! * a [`Resolver`], registered with [`register`];
//! * nodes that keep packets in a [`Hold`], named with [`hold_at`]; [`IncompleteNode`] is one that
//!   needs only its counters and next nodes;
//! * a node that receives the protocol's packets and reports their senders by a [`Reporter`];
//! * the interfaces' addresses: it calls [`addresses_changed`] after each change.
//!
//! Life of a neighbour:
//!
//! ```text
//!             packet for it           three requests, no reply
//! (unknown) ───────────────► incomplete ───────────────► failed ─► (deleted)
//!     │                          │ reply, request            │ packet for it, after a silence
//!     │ request, reply           ▼                           ▼ of 2, 4, 8, 16, 30 seconds
//!     └───────────────────► reachable ◄────────┐         incomplete
//!                                │ age limit   │ reply
//!                                ▼             │
//!                         stale ─► probe ──────┴─► three probes, no reply: (deleted)
//! ```
#![forbid(unsafe_code)]

pub mod api;
mod api_types;
mod args;
pub mod arping;
mod awaited;
pub mod cli;
mod counters;
mod hold;
pub mod message_types;
mod messages;
pub mod neighbors;
mod report;
mod resolver;
mod settings;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod walk;

pub use counters::{Counted, PacketCounters};
pub use hold::{Exits, Hold, IncompleteNode, NEIGHBORS, PER_NEIGHBOR, PER_WORKER};
pub use messages::Origin;
pub use neighbors::{
    Neighbor, NeighborChange, NeighborError, NeighborFlags, Neighbors, addresses_changed, announce,
    ask_for_next_hops, begin_replacing, confirm, finish_replacing, flush, flush_then, probe,
    remove, resolve, send, set, set_config, set_throttle,
};
pub use report::{Reported, Reporter};
pub use resolver::{HoldNodes, Resolver, hold_at, register};
pub use table::{Config, MAX_AGE, MAX_LIMIT, State, TableStats};
pub use thalweg_fib::Version;

use thalweg_engine::Feature;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "neighbor",
    about: "neighbours of all address families",
    needs: &[&thalweg_device::FEATURE, &thalweg_fib::FEATURE],
    commands: cli::COMMANDS,
    api: api::SERVICES,
    init: |c| {
        neighbors::init(c);
        arping::init(c);
        api_types::init(c);
    },
    ready: neighbors::check_reporters,
    settings: &[&settings::SETTINGS],
    ..Feature::DEFAULT
};

/// The feature for tests, which must not depend on how fast they run: requests for a neighbour are
/// repeated by the clock, whatever packets come.
pub static BY_CLOCK: Feature = Feature {
    name: "neighbor-by-clock",
    about: "requests that no packet repeats",
    needs: &[&FEATURE],
    ready: |c| set_throttle(c, std::time::Duration::from_secs(3600)),
    ..Feature::DEFAULT
};
