//! `first unlucky-ttl`.

use crate::unlucky::{DEFAULT, set_unlucky, unlucky};
use thalweg_engine::setting::{Global, Number, Rare};

/// The TTL of packets that are dropped.
pub static SETTING: Global<Number> = Global {
    command: "first unlucky-ttl",
    help: "Drop IPv4 packets with this TTL",
    form: Number { usage: "<ttl>", name: "TTL", range: (0, 255) },
    key: "thalweg.first.unlucky-ttl",
    default: || DEFAULT.into(),
    get: |c| Some(unlucky(c)),
    set: set_unlucky,
    rare: Rare::NONE,
};
