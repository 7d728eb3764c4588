//! `nat44 forwarding`.

use crate::section::{tuned, tuning};
use crate::state::set_forwarding;
use thalweg_engine::setting::{Global, Switch};

/// Forwarding of packets from outside without a session.
pub static SETTING: Global<Switch> = Global {
    command: "nat44 forwarding",
    help: "Forward packets from outside that have no session, or drop them",
    form: Switch("state"),
    key: "thalweg.nat44.forwarding",
    default: || false,
    get: |c| tuned(c, |nat| nat.forwarding()),
    set: |c, on| Ok(set_forwarding(c, on)?),
    rare: tuning(),
};
