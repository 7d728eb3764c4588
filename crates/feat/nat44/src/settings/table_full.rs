//! `set nat44 table-full`.

use crate::section::{tuned, tuning};
use crate::state::set_refuse_when_full;
use thalweg_engine::setting::{Global, Word, Worded};

/// Handling of a new session while the session table is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// The oldest half-open session gives way.
    Recycle,
    /// The new session is refused.
    Refuse,
}

impl Worded for WhenFull {
    const USAGE: &'static str = "recycle | refuse";
    const WORDS: &'static [&'static str] = &["recycle", "refuse"];
    const VALUES: &'static [WhenFull] = &[WhenFull::Recycle, WhenFull::Refuse];
}

/// Handling of a new session while the session table is full.
pub static SETTING: Global<Word<WhenFull>> = Global {
    command: "set nat44 table-full",
    help: "Set the handling of new sessions when the session table is full: recycle the oldest half-open\n\
           session, or refuse the new one",
    form: Word::new("policy"),
    key: "thalweg.nat44.table-full",
    default: || WhenFull::Recycle,
    get: |c| tuned(c, |nat| if nat.refuses() { WhenFull::Refuse } else { WhenFull::Recycle }),
    set: |c, policy| Ok(set_refuse_when_full(c, policy == WhenFull::Refuse)?),
    rare: tuning(),
};
