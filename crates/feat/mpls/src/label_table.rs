//! Label tables as workers read them.
//!
//! A table is an array of one word per label and bottom-of-stack bit: a look-up is one load. The
//! table reserves 16 MiB; only the pages with labels are committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thalweg_fib::rib::Mode;
use thalweg_fib::{Dpo, TableId, Version};
use thalweg_tables::SparseArray;
use thalweg_wire::mpls::{Entry, Label};

/// Entries of a table: a label has 20 bits, and one more says whether it is the bottom.
const ENTRIES: usize = 1 << 21;

/// A label, and whether it is the bottom of the stack (`eos`). In the order of dumps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// The label.
    pub label: Label,
    /// True at the bottom of the stack.
    pub eos: bool,
}

impl Key {
    fn index(self) -> u32 {
        self.label.get() << 1 | u32::from(self.eos)
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bit = if self.eos { "eos" } else { "neos" };
        write!(f, "{}:{bit}", thalweg_fib::label_text(self.label))
    }
}

/// An IP packet whose last label is popped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behind {
    /// Its version.
    pub version: Version,
    /// Properties of the label that the packet takes over: none, TTL and class, or the TTL.
    pub mode: Mode,
}

impl Behind {
    /// A packet that stays as it is.
    pub(crate) const fn of(version: Version) -> Behind {
        Behind { version, mode: Mode::Pipe }
    }

    /// Returns the bits in the place of the label.
    const fn bits(self) -> u32 {
        self.version as u32 | mode_bits(self.mode) << 1
    }

    #[inline(always)]
    const fn from_bits(bits: u32) -> Behind {
        let version = if bits & 1 == 0 { Version::V4 } else { Version::V6 };
        Behind { version, mode: mode_of(bits >> 1) }
    }
}

const fn mode_bits(mode: Mode) -> u32 {
    match mode {
        Mode::Pipe => 0,
        Mode::Uniform => 1,
        Mode::Ttl => 2,
    }
}

#[inline(always)]
const fn mode_of(bits: u32) -> Mode {
    match bits {
        0 => Mode::Pipe,
        1 => Mode::Uniform,
        _ => Mode::Ttl,
    }
}

/// Destination of such a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// Next: an adjacency or group.
    Sent(Dpo),
    /// Next: a look-up in a table.
    LookedUp(TableId),
    /// Next: a look-up in the table of the interface that it came by.
    Here,
    /// Next: a look-up as if it had come by another interface.
    Received(u32),
}

/// Action on packets with a label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nobody has bound it.
    Miss,
    /// Another label in its place, then to an MPLS adjacency, or a group of such.
    Swap(Label, Dpo),
    /// The label of a member of a load balance in its place; the implicit null pops it, before an
    /// IP packet of this version if it is the last.
    Member(Version, Dpo),
    /// Pop the last label before an IP packet.
    Ip(Behind, To),
    /// Pop the last label, and look the IP packet up in the table with this number of its version.
    AnyIp(Mode, TableId),
    /// Pop, and send what is still labelled to an MPLS adjacency.
    Pop(Dpo),
    /// Pop, and the interface receives the Ethernet frame, behind a control word if so.
    ReceiveL2(u32, bool),
    /// Pop, and look the next label up in a table.
    LookUpMpls(TableId),
    /// Pop, and look the next label up in the same table.
    LookUpMplsHere,
    /// Next: the router itself.
    Punt,
    /// Drop.
    Drop,
}

impl Action {
    /// The action in one word: its kind in the lowest four bits, then a label, then a number.
    pub(crate) fn pack(self) -> u64 {
        let word = |kind: u64, label: u32, value: u32| {
            kind | u64::from(label) << 4 | u64::from(value) << 32
        };
        match self {
            Action::Miss => 0,
            Action::Swap(label, dpo) => word(1, label.get(), dpo.get()),
            Action::Member(version, dpo) => word(2, version as u32, dpo.get()),
            Action::Ip(how, To::Sent(dpo)) => word(3, how.bits(), dpo.get()),
            Action::Pop(dpo) => word(4, 0, dpo.get()),
            Action::Ip(how, To::LookedUp(table)) => word(5, how.bits(), table.get()),
            Action::Ip(how, To::Here) => word(6, how.bits(), 0),
            Action::Ip(how, To::Received(sw_if)) => word(7, how.bits(), sw_if),
            Action::LookUpMpls(table) => word(8, 0, table.get()),
            Action::LookUpMplsHere => word(9, 0, 0),
            Action::Punt => word(10, 0, 0),
            Action::Drop => word(11, 0, 0),
            Action::ReceiveL2(sw_if, control_word) => word(12, control_word.into(), sw_if),
            Action::AnyIp(mode, table) => word(13, mode_bits(mode), table.get()),
        }
    }

    #[inline]
    pub(crate) fn unpack(word: u64) -> Action {
        let (label, value) = (Label((word >> 4) as u32 & 0xf_ffff), (word >> 32) as u32);
        let how = Behind::from_bits(label.get());
        match word & 15 {
            0 => Action::Miss,
            1 => Action::Swap(label, Dpo(value)),
            2 => Action::Member(how.version, Dpo(value)),
            3 => Action::Ip(how, To::Sent(Dpo(value))),
            4 => Action::Pop(Dpo(value)),
            5 => Action::Ip(how, To::LookedUp(TableId(value))),
            6 => Action::Ip(how, To::Here),
            7 => Action::Ip(how, To::Received(value)),
            8 => Action::LookUpMpls(TableId(value)),
            9 => Action::LookUpMplsHere,
            10 => Action::Punt,
            12 => Action::ReceiveL2(value, label.get() != 0),
            13 => Action::AnyIp(mode_of(label.get()), TableId(value)),
            _ => Action::Drop,
        }
    }
}

/// The actions of a table's labels.
#[derive(Debug, Default)]
pub struct Leaves(SparseArray<AtomicU64, ENTRIES>);

impl Leaves {
    /// Sets what becomes of a label, from a worker's next look-up on.
    pub(crate) fn set(&self, key: Key, action: Action) {
        self.0.at(key.index()).store(action.pack(), Ordering::Release);
    }

    /// Returns what becomes of the label of a stack entry.
    #[inline(always)]
    pub fn get(&self, entry: Entry) -> Action {
        Action::unpack(self.word(entry))
    }

    /// Returns what [`get`](Self::get) does, as one word.
    #[inline(always)]
    pub(crate) fn word(&self, entry: Entry) -> u64 {
        let index = entry.0 >> 12 << 1 | entry.0 >> 8 & 1;
        self.0.at(index).load(Ordering::Acquire)
    }

    /// Returns the outgoing label and the object of a swap, as the word has them; `None` for
    /// another action.
    #[inline(always)]
    pub(crate) fn swap_of(word: u64) -> Option<(u32, Dpo)> {
        (word & 15 == 1).then_some(((word >> 4) as u32 & 0xf_ffff, Dpo((word >> 32) as u32)))
    }

    /// The same of the most usual pops: before IPv4 packets that stay as they are.
    #[inline(always)]
    pub(crate) fn pop_of(word: u64) -> Option<Popped> {
        let value = (word >> 32) as u32;
        match word as u32 {
            3 => Some(Popped::Sent(Dpo(value))),
            5 => Some(Popped::LookedUp(TableId(value))),
            _ => None,
        }
    }
}

/// Fate of an IPv4 packet whose last label was popped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Popped {
    /// Goes to an adjacency or group.
    Sent(Dpo),
    /// Goes into a look-up in a table.
    LookedUp(TableId),
}

/// All tables, as published to workers.
#[derive(Default)]
pub struct Tables {
    /// The table of interfaces, if it was created.
    pub main: Option<Arc<Leaves>>,
    /// All of them.
    pub all: Vec<(TableId, Arc<Leaves>)>,
}

impl Tables {
    /// Returns a table.
    #[must_use]
    pub fn get(&self, id: TableId) -> Option<&Arc<Leaves>> {
        self.all.iter().find(|(table, _)| *table == id).map(|(_, leaves)| leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [Mode; 3] = [Mode::Pipe, Mode::Uniform, Mode::Ttl];

    #[test]
    fn actions_fit_a_word() {
        let (label, dpo, table) = (Label(0xf_fffe), Dpo(0xf_ffff), TableId(u32::MAX));
        let hows = [Version::V4, Version::V6]
            .into_iter()
            .flat_map(|version| MODES.map(|mode| Behind { version, mode }));
        let any_ip = MODES.map(|mode| Action::AnyIp(mode, table));
        let of_ip = hows.flat_map(|how| {
            [To::Sent(dpo), To::LookedUp(table), To::Here, To::Received(u32::MAX)]
                .map(|to| Action::Ip(how, to))
        });
        let plain = Behind::of(Version::V4);
        for action in [
            Action::Miss,
            Action::Swap(label, dpo),
            Action::Member(Version::V4, dpo),
            Action::Member(Version::V6, dpo),
            Action::Pop(dpo),
            Action::ReceiveL2(u32::MAX, true),
            Action::ReceiveL2(7, false),
            Action::LookUpMpls(table),
            Action::LookUpMplsHere,
            Action::Punt,
            Action::Drop,
        ]
        .into_iter()
        .chain(of_ip)
        .chain(any_ip)
        {
            let word = action.pack();
            assert_eq!(Action::unpack(word), action);
            let popped = match action {
                Action::Ip(how, To::Sent(dpo)) if how == plain => Some(Popped::Sent(dpo)),
                Action::Ip(how, To::LookedUp(table)) if how == plain => {
                    Some(Popped::LookedUp(table))
                }
                _ => None,
            };
            assert_eq!(Leaves::pop_of(word), popped);
            assert_eq!(Leaves::swap_of(word).is_some(), matches!(action, Action::Swap(..)));
        }
    }

    #[test]
    fn labels_and_bottoms_have_entries_of_their_own() {
        let leaves = Leaves::default();
        for label in [0, 16, 17, 0xf_ffff] {
            for eos in [false, true] {
                let entry = Entry::new(Label(label), 5, eos, 64);
                assert_eq!(leaves.get(entry), Action::Miss);
                let swap = Action::Swap(Label(label), Dpo(label + u32::from(eos)));
                leaves.set(Key { label: Label(label), eos }, swap);
                assert_eq!(leaves.get(entry), swap);
            }
        }
    }
}
