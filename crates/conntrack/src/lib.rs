//! Connection tracking: who talks with whom, what was said last, and so what may come next.
//!
//! A [`Tracker`] belongs to one worker and shares nothing. It is asked in batches: headers are read
//! into a [`Batch`], all connections are looked up together, and then packet by packet the state
//! moves on and says what the packet is ([`State`]: new, established, related, a reply, invalid).
//! Nothing is remembered of a packet until it is committed.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`batch`] | from packets to keys and what the state machines need |
//! | [`tuple`](mod@tuple) | keys, and what they stand for |
//! | [`tcp`] | one state per side, with the windows that each may use |
//! | [`timeout`] | how long a connection may be silent, by what it is doing |
//! | [`state`] | what is known of a packet |
//! | [`tracker`] | connections: found, moved on, committed, ended |
//! | [`connection`] | one connection, as it is shown |
//! | [`filter`] | choosing connections, for lists and for forgetting them |
//!
//! IPv4 keys have two words and IPv6 keys five; a tracker is for one of both.

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
pub use tracker::{Commit, FirstFragment, Tracked, Tracker, WhenFull};
pub use tuple::Tuple;

/// Words of an IPv4 connection's key.
pub const IPV4: usize = 2;
/// Words of an IPv6 connection's key.
pub const IPV6: usize = 5;
