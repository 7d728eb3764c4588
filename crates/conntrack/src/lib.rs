//! Connection tracking: which connections exist, their state, and whether a packet fits it.
//!
//! A [`Tracker`] belongs to one worker and shares nothing. The tracker works in batches: headers
//! are read into a [`Batch`], all connections are looked up together, and then packet by packet the
//! connection is updated and the packet classified ([`State`]: new, established, related, reply,
//! invalid). A connection is remembered only once a packet of it is committed.
//!
//! | module | contents |
//! | --- | --- |
//! | [`batch`] | reads packets into keys and header fields |
//! | [`tuple`](mod@tuple) | keys and tuples |
//! | [`tcp`] | TCP state per side, with windows |
//! | [`timeout`] | timeouts by protocol and state |
//! | [`state`] | the state of a packet (`ct_state`) |
//! | [`tracker`] | connections: look-up, update, commit, expiry |
//! | [`connection`] | a connection for display |
//! | [`filter`] | filters for listing and flushing |
//!
//! IPv4 keys have two words and IPv6 keys five. A tracker has a table for each family; limits,
//! zones, timeouts and counters are those of both.

#![forbid(unsafe_code)]

pub mod batch;
pub mod connection;
mod entry;
pub mod filter;
pub mod state;
pub mod tcp;
pub mod timeout;
pub mod tracker;
pub mod tuple;

pub use batch::{Batch, Checks, Fragment};
pub use connection::{Connection, Detail};
pub use filter::Filter;
pub use state::State;
pub use thalweg_tables::flow::{FlowId, Millis};
pub use timeout::{Policy, Timeout};
pub use tracker::{Commit, FirstFragment, Parts, Tracked, Tracker, WhenFull};
pub use tuple::Tuple;

/// Words in the key of an IPv4 connection.
pub const IPV4: usize = 2;
/// Words in the key of an IPv6 connection.
pub const IPV6: usize = 5;
