//! The tracking state of a packet: `ct_state`.

use std::fmt;
use std::ops::BitOr;

/// A set of flags. Without [`State::TRACKED`] no other flag is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State(u8);

/// Names of the flags, lowest bit first.
const NAMES: [&str; 8] = ["new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"];

impl State {
    /// No flags: the packet has not been tracked.
    pub const NONE: State = State(0);
    /// Belongs to no committed connection, or to one that has not been answered yet.
    pub const NEW: State = State(0x01);
    /// Belongs to a connection with packets in both directions.
    pub const ESTABLISHED: State = State(0x02);
    /// Related to a connection: an ICMP error.
    pub const RELATED: State = State(0x04);
    /// Is in the reply direction of the connection.
    pub const REPLY: State = State(0x08);
    /// Cannot be tracked, or does not fit the state of its connection.
    pub const INVALID: State = State(0x10);
    /// Has been tracked.
    pub const TRACKED: State = State(0x20);
    /// The source was translated.
    pub const SNAT: State = State(0x40);
    /// The destination was translated.
    pub const DNAT: State = State(0x80);

    /// Creates a set from its bits.
    pub const fn from_bits(bits: u8) -> State {
        State(bits)
    }

    /// The set as bits, one per flag.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether all flags of `other` are set.
    #[inline]
    pub const fn contains(self, other: State) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flag with this name.
    pub fn named(name: &str) -> Option<State> {
        NAMES.iter().position(|n| *n == name).map(|bit| State(1 << bit))
    }

    /// Names of the flags, lowest bit first.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().enumerate().filter(move |(bit, _)| self.0 >> bit & 1 == 1).map(|x| x.1)
    }

    #[inline]
    pub(crate) const fn and(self, other: State) -> State {
        State(self.0 | other.0)
    }
}

impl BitOr for State {
    type Output = State;
    #[inline]
    fn bitor(self, other: State) -> State {
        self.and(other)
    }
}

/// Names separated by `|`; `-` for the empty set.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("-");
        }
        for (i, name) in self.names().enumerate() {
            f.write_str(if i == 0 { "" } else { "|" })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_names() {
        let state = State::TRACKED | State::NEW;
        assert_eq!((state.to_string(), State::NONE.to_string()), ("new|trk".into(), "-".into()));
        assert!(state.contains(State::NEW) && !state.contains(State::NEW | State::REPLY));
        assert_eq!((State::named("dnat"), State::named("xyz")), (Some(State::DNAT), None));
        assert_eq!(State::from_bits(state.bits()), state);
    }
}
