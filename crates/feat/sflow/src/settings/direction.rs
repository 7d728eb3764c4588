//! `sflow direction`.

use crate::state::{Direction, set_direction, values};
use thalweg_engine::setting::{Global, Rare, Word, Worded};

impl Worded for Direction {
    const USAGE: &'static str = "rx|tx|both";
    const WORDS: &'static [&'static str] = &["rx", "tx", "both"];
    const VALUES: &'static [Direction] = &[Direction::Rx, Direction::Tx, Direction::Both];
}

/// The packets that are sampled.
pub static SETTING: Global<Word<Direction>> = Global {
    command: "sflow direction",
    help: "Sample received packets (rx), sent packets (tx) or both",
    form: Word::new("sampling direction"),
    key: "thalweg.sflow.direction",
    default: || Direction::Rx,
    get: |c| values(c, |all| all.direction),
    set: |c, direction| Ok(set_direction(c, direction)?),
    rare: Rare::NONE,
};
