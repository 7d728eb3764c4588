//! What is known of a packet: `ct_state`.

use std::fmt;
use std::ops::BitOr;

/// A set of flags. Without [`State::TRACKED`] there is no other one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State(u8);

/// Names of the flags, lowest bit first.
const NAMES: [&str; 8] = ["new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"];

impl State {
    /// Nothing: the tracker has not seen the packet.
    pub const NONE: State = State(0);
    /// Of no committed connection, or of one that the other side has not answered yet.
    pub const NEW: State = State(0x01);
    /// Of a connection that both sides know.
    pub const ESTABLISHED: State = State(0x02);
    /// About a connection: an ICMP error.
    pub const RELATED: State = State(0x04);
    /// Against the direction that was committed.
    pub const REPLY: State = State(0x08);
    /// Cannot be tracked, or is not what may come next.
    pub const INVALID: State = State(0x10);
    /// The tracker has seen it.
    pub const TRACKED: State = State(0x20);
    /// Its source was translated.
    pub const SNAT: State = State(0x40);
    /// Its destination was translated.
    pub const DNAT: State = State(0x80);

    /// The flags of these bits.
    pub const fn from_bits(bits: u8) -> State {
        State(bits)
    }

    /// One bit for each flag.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether it has all flags of `other`.
    #[inline]
    pub const fn contains(self, other: State) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flag of this name.
    pub fn named(name: &str) -> Option<State> {
        NAMES.iter().position(|n| *n == name).map(|bit| State(1 << bit))
    }

    /// Names of its flags, lowest bit first.
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

/// Flags with bars between them; `-` if there are none.
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
