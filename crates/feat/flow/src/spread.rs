//! How the connections that rules track are spread over workers.
//!
//! A connection has one owner, where both directions meet; other workers hand its packets over
//! before any rule is applied.

use thalweg_conntrack::Tuple;
use thalweg_graph::HandOff;
use thalweg_wire::ip::{has_ports, protocol};
use thalweg_wire::owner;

use crate::nodes::flow_rules::Engine;
use crate::rule::Nat;
use crate::rule::set::Field;
use crate::tables::{Compiled, Step};

/// How the connections that rules track are assigned to workers.
///
/// Both directions must meet. With translation, the replies of a connection have another tuple,
/// chosen so that it has the same owner; where that cannot be chosen, more has to be in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Spread {
    /// By the hash of the tuple.
    #[default]
    Tuple,
    /// The same, but by protocol for those without ports, of which only addresses can be
    /// translated, and for SCTP.
    Ports,
    /// All to one worker: rules change addresses or ports before connections are tracked, or
    /// translate to a few ports.
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
    number == protocol::SCTP || (!has_ports(number) && number != protocol::ICMP)
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

    /// The owner of connections of a protocol without ports, where these belong together.
    fn owner_without_ports(&self, number: u8) -> Option<usize> {
        let alone = self.spread == Spread::Ports && is_without_ports(number);
        alone.then(|| usize::from(number) % self.workers)
    }
}

impl Engine {
    /// The worker that owns the connection of packet `i`, if it is another one. `frame` are the
    /// packet's bytes.
    #[inline]
    pub(crate) fn owner(&self, hand_off: &HandOff, i: usize, frame: &[u8]) -> Option<usize> {
        let place = &self.place;
        if place.workers < 2 {
            return None;
        }
        let owner = match place.spread {
            Spread::Tuple => match self.batch.owner_hash(i) {
                Some(hash) => hand_off.owner(hash),
                None => self.owner_behind_tags(frame)?,
            },
            Spread::Ports => match self.batch.protocol(i) {
                Some(number) => match place.owner_without_ports(number) {
                    Some(owner) => owner,
                    None => hand_off.owner(self.batch.owner_hash(i)?),
                },
                None => self.owner_behind_tags(frame)?,
            },
            Spread::One => 0,
        };
        (owner != place.worker).then_some(owner)
    }

    /// The owner of a packet behind more tags than rules read, which they may pop.
    fn owner_behind_tags(&self, frame: &[u8]) -> Option<usize> {
        if !self.deep {
            return None;
        }
        let network = owner::network(frame).filter(|n| n.labels == 0)?;
        let flow = owner::flow(frame.get(network.at..)?)?;
        let by_hash = || owner::share(flow.symmetric_hash32(), self.place.workers);
        Some(self.place.owner_without_ports(flow.protocol).unwrap_or_else(by_hash))
    }
}

impl Step {
    /// Whether it changes the fields that tell connections apart.
    fn changes_tuple(&self) -> bool {
        match self {
            Step::Set(..) => true,
            Step::SetBits(field, ..) => matches!(
                field,
                Field::Source | Field::Destination | Field::SourcePort | Field::DestinationPort
            ),
            _ => false,
        }
    }
}

/// Minimum number of ports of a translation for each worker to have a fair share of them.
const FAIR_PORTS: u32 = 64;

/// How the connections of a set's rules may be spread.
pub(crate) fn spread<'a>(rules: impl Iterator<Item = &'a Compiled> + Clone) -> Spread {
    let cts = |rule: &'a Compiled| {
        rule.steps.iter().filter_map(|step| match step {
            Step::Ct(ct) => Some(ct),
            _ => None,
        })
    };
    let changes = rules.clone().any(|rule| rule.steps.iter().any(Step::changes_tuple));
    // What follows a change in its rule, or what is left of a rule that another table returns to.
    let is_late = |rule: &Compiled| {
        let mut changed = false;
        rule.steps.iter().any(|step| {
            let tracks = matches!(step, Step::Ct(_) | Step::Resubmit(..));
            let late = changed && tracks;
            changed |= step.changes_tuple() || (changes && matches!(step, Step::Resubmit(..)));
            late
        })
    };
    let nats = rules.clone().flat_map(cts).filter_map(|ct| Some((ct.zone, ct.nat.as_ref()?)));
    let is_scarce = |(_, nat): (u16, &Nat)| {
        let ports = nat.range.as_ref().and_then(|range| range.ports);
        ports.is_some_and(|(first, last)| u32::from(last - first) + 1 < FAIR_PORTS)
    };
    let mut zones = rules.clone().flat_map(cts).map(|ct| ct.zone);
    let first = zones.next();
    // A packet that was translated in one zone has another tuple in the next.
    let several = zones.any(|zone| Some(zone) != first);
    match nats.clone().next() {
        _ if rules.clone().any(is_late) || nats.clone().any(is_scarce) => Spread::One,
        Some(_) if several => Spread::One,
        Some(_) => Spread::Ports,
        None => Spread::Tuple,
    }
}
