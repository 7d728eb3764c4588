//! Spread of the connections that rules track over workers.
//!
//! A connection has one owner, where both directions meet; other workers hand its packets over
//! before any rule is applied. The tracked tuple determines it: rules that change it first are
//! tried out on the packet's fields (`dry_run.rs`).

use thalweg_conntrack::{Batch, Tuple};
use thalweg_graph::HandOff;
use thalweg_wire::ip::{has_ports, protocol};
use thalweg_wire::owner;

use crate::nodes::flow_rules::Engine;
use crate::paths::{Move, Paths, moves};
use crate::rule::Nat;
use crate::tables::{Compilation, Step};

/// Assignment to workers of the connections that rules track.
///
/// Both directions must meet. With translation, the replies of a connection have another tuple,
/// chosen so that it has the same owner; if that is impossible, more connections share a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Spread {
    /// Worker by the hash of the tuple.
    #[default]
    Tuple,
    /// The same, but by protocol for those without ports, of which only addresses can be
    /// translated, and for SCTP.
    Ports,
    /// All to one worker: rules track packets under several tuples, or translate to a few ports.
    One,
}

/// A worker, and which connections it owns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) worker: usize,
    pub(crate) workers: usize,
    pub(crate) spread: Spread,
}

/// Returns whether no port can be chosen that leads a connection's replies to its worker: there are
/// none, or fragments could not be given another (SCTP, whose checksum covers the whole datagram).
fn is_without_ports(number: u8) -> bool {
    number == protocol::SCTP
        || !(has_ports(number) || matches!(number, protocol::ICMP | protocol::ICMPV6))
}

impl Place {
    /// Returns whether packets with the reply tuple of a connection that is here come here, too.
    pub(crate) fn has(&self, reply: &Tuple) -> bool {
        let by_hash = || {
            let hash = reply.owner_hash();
            hash.is_some_and(|hash| owner::share(hash, self.workers) == self.worker)
        };
        match self.spread {
            _ if self.workers < 2 => true,
            Spread::One => true,
            Spread::Ports if is_without_ports(reply.protocol) => true,
            Spread::Ports | Spread::Tuple => by_hash(),
        }
    }

    /// Returns whether packet `i` belongs here.
    pub(crate) fn is_of<const W: usize>(&self, batch: &Batch<W>, i: usize) -> bool {
        let owner = || self.owner_of(&batch.tuple(i)?);
        let is_shared = self.workers > 1 && self.spread != Spread::One;
        !is_shared || owner().is_none_or(|owner| owner == self.worker)
    }

    /// The owner of a connection by its tuple.
    pub(crate) fn owner_of(&self, tuple: &Tuple) -> Option<usize> {
        let by_hash = || Some(owner::share(tuple.owner_hash()?, self.workers));
        self.owner_without_ports(tuple.protocol).or_else(by_hash)
    }

    /// The owner of a connection by its tuple, or by that of its replies, however connections are
    /// spread.
    pub(crate) fn owner(&self, tuple: &Tuple) -> Option<usize> {
        match self.spread {
            Spread::One => Some(0),
            Spread::Tuple | Spread::Ports => self.owner_of(tuple),
        }
    }

    /// The owner of connections of a protocol without ports, where these belong together.
    fn owner_without_ports(&self, number: u8) -> Option<usize> {
        let alone = self.spread == Spread::Ports && is_without_ports(number);
        alone.then(|| usize::from(number) % self.workers)
    }
}

impl Engine {
    /// The worker that owns the connection of packet `i`, if it is another one.
    #[inline]
    pub(crate) fn owner(
        &mut self,
        hand_off: &HandOff,
        set: &Compilation,
        i: usize,
    ) -> Option<usize> {
        let place = self.place;
        if place.workers < 2 {
            return None;
        }
        if set.changed_first && place.spread != Spread::One {
            return self.owner_of_changed(set, i).filter(|owner| *owner != place.worker);
        }
        let owner = match place.spread {
            Spread::Tuple => hand_off.owner(self.owner_hash(i)?),
            Spread::Ports => match place.owner_without_ports(self.protocol(i)?) {
                Some(owner) => owner,
                None => hand_off.owner(self.owner_hash(i)?),
            },
            Spread::One => 0,
        };
        (owner != place.worker).then_some(owner)
    }

    /// [`Batch::owner_hash`] of either family.
    #[inline]
    fn owner_hash(&self, i: usize) -> Option<u32> {
        self.v4.batch.owner_hash(i).or_else(|| self.v6.batch.owner_hash(i))
    }

    /// [`Batch::protocol`] of either family.
    #[inline]
    fn protocol(&self, i: usize) -> Option<u8> {
        self.v4.batch.protocol(i).or_else(|| self.v6.batch.protocol(i))
    }
}

/// Minimum number of ports of a translation for each worker to have a fair share of them.
const FAIR_PORTS: u32 = 64;

/// A kind of rules: the same for those that differ in nothing that matters here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RuleKind {
    table: u8,
    moves: Vec<Move>,
    translates: bool,
    /// The rule translates to few ports.
    is_scarce: bool,
}

impl RuleKind {
    pub(crate) fn of(table: u8, steps: &[Step]) -> RuleKind {
        let nats = steps.iter().filter_map(|step| match step {
            Step::Ct(ct) => ct.nat.as_ref(),
            _ => None,
        });
        let is_scarce = |nat: &Nat| {
            let ports = nat.range.as_ref().and_then(|range| range.ports);
            ports.is_some_and(|(first, last)| u32::from(last - first) + 1 < FAIR_PORTS)
        };
        RuleKind {
            table,
            moves: moves(steps),
            translates: nats.clone().next().is_some(),
            is_scarce: nats.clone().any(is_scarce),
        }
    }
}

/// Returns the possible spread of the connections of a set's rules, and whether their owner only
/// shows once the rules in front of the tracker have been followed.
pub(crate) fn spread<'a>(kinds: impl Iterator<Item = &'a RuleKind> + Clone) -> (Spread, bool) {
    let paths = Paths::of(kinds.clone().map(|kind| (kind.table, &kind.moves)));
    let spread = match kinds.clone().any(|kind| kind.translates) {
        _ if paths.several_tuples || kinds.clone().any(|kind| kind.is_scarce) => Spread::One,
        // Headers under a popped tag are not known before.
        _ if paths.changed_first && paths.tagged_first => Spread::One,
        true => Spread::Ports,
        false => Spread::Tuple,
    };
    (spread, paths.changed_first && spread != Spread::One)
}
