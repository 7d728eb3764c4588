//! Room in a full table: which neighbour gives way. No interface takes the places of the others,
//! and one that is only heard takes none of those that answer.

use super::{Key, MAX_LIMIT, MAX_PENDING, NeighborTable, Place, Share, TableFull, place, side};
use crate::Version;
use std::collections::{BTreeMap, BTreeSet};
use thalweg_device::SwIfIndex;

/// Maximum number of pending neighbours of a family on an interface: a scan of one subnet leaves
/// room for the others.
pub(super) const PENDING_PER_INTERFACE: usize = 2048;

/// Reason why a neighbour gets a MAC address; a later one counts more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Reason {
    /// Heard, and nobody has asked for it.
    Heard,
    /// The answer to a question.
    Awaited,
    /// Configured.
    Configured,
}

impl Share {
    /// Number of neighbours that may be replaced.
    pub(super) fn replaceable(&self) -> usize {
        self.heard.len() + self.needed.len()
    }

    /// The numbers by which interfaces are ranked.
    pub(super) fn sizes(&self) -> Sizes {
        [self.pending.len(), self.heard.len(), self.replaceable()]
    }
}

/// Numbers of neighbours of a share: pending, only heard, replaceable.
pub(super) type Sizes = [usize; 3];

/// Place of a number in [`Sizes`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Rank {
    Pending,
    Heard,
    Replaceable,
}

/// The interfaces of a family by each of their [`Sizes`] that is not zero.
#[derive(Default)]
pub(super) struct Ranks([BTreeSet<(usize, SwIfIndex)>; 3]);

impl Ranks {
    /// Follows a change of an interface's share.
    pub(super) fn change(&mut self, of: SwIfIndex, before: Sizes, after: Sizes) {
        for ((all, before), after) in self.0.iter_mut().zip(before).zip(after) {
            if before == after {
                continue;
            }
            all.remove(&(before, of));
            if after > 0 {
                all.insert((after, of));
            }
        }
    }

    /// Returns the interface that has most, and how many.
    pub(super) fn largest(&self, by: Rank) -> Option<(usize, SwIfIndex)> {
        self.0[by as usize].last().copied()
    }
}

/// Shares in which a neighbour is looked for that makes room.
#[derive(Clone, Copy)]
enum Within {
    Interface,
    Family,
    All,
}

impl NeighborTable {
    /// Makes room for one more pending neighbour: the one that has been asked for longest is given
    /// up, on the interface if that has many, else on the one that has most.
    pub(super) fn make_place(&mut self, key: Key) {
        let family = Version::of_ip(key.1);
        let pending = |at: &Place| self.shares.get(at).map_or(0, |share| share.pending.len());
        let at = if pending(&place(key)) >= PENDING_PER_INTERFACE {
            Some(place(key))
        } else if self.sides[family.index()].incomplete >= MAX_PENDING {
            let most = self.sides[family.index()].ranks.largest(Rank::Pending);
            most.map(|(_, sw_if)| (sw_if, family))
        } else {
            return;
        };
        let oldest = at.and_then(|at| Some((at.0, self.shares.get(&at)?.pending.first()?.1)));
        if let Some(oldest) = oldest {
            self.sides[family.index()].stats.crowded += 1;
            self.remove(oldest);
        }
    }

    /// Returns how many neighbours of a family are static, and how many of them one interface has
    /// at most: these make no room.
    pub(crate) fn statics(&self, family: Version) -> (usize, usize) {
        let mut each: BTreeMap<SwIfIndex, usize> = BTreeMap::new();
        for ((sw_if, ip), _) in self.iter().filter(|(_, e)| e.is_static) {
            if Version::of_ip(ip) == family {
                *each.entry(sw_if).or_default() += 1;
            }
        }
        (each.values().sum(), each.values().copied().max().unwrap_or_default())
    }

    /// Makes room for one more resolved neighbour.
    pub(super) fn make_room(&mut self, key: Key, reason: Reason) -> Result<(), TableFull> {
        let family = Version::of_ip(key.1);
        loop {
            let side = &self.sides[family.index()];
            let config = side.config;
            let own = self.shares.get(&place(key)).map_or(0, |s| s.resolved);
            let (oldest, full) = if own >= config.interface_limit {
                let found = self.replaced_by(key, reason, Within::Interface);
                (found, TableFull::Interface(config.interface_limit))
            } else if side.resolved >= config.limit {
                let found = self.replaced_by(key, reason, Within::Family);
                (found, TableFull::Family(config.limit))
            } else if self.sides.iter().map(|s| s.resolved).sum::<usize>() >= MAX_LIMIT {
                (self.replaced_by(key, reason, Within::All), TableFull::All)
            } else {
                return Ok(());
            };
            let stats = &mut self.sides[family.index()].stats;
            let Some(oldest) = oldest else {
                stats.refused += 1;
                return Err(full);
            };
            stats.recycled += 1;
            self.remove(oldest);
        }
    }

    /// Returns the largest share.
    fn largest(&self, key: Key, within: Within, by: Rank) -> Option<(Place, &Share)> {
        let of = |family: Version| {
            let (size, sw_if) = self.sides[family.index()].ranks.largest(by)?;
            Some((size, (sw_if, family)))
        };
        let at = match within {
            Within::Interface => place(key),
            Within::Family => of(Version::of_ip(key.1))?.1,
            Within::All => {
                let all = Version::ALL.into_iter().filter_map(of);
                all.max_by_key(|(size, at)| (*size, at.0))?.1
            }
        };
        Some((at, self.shares.get(&at)?))
    }

    /// Returns the neighbour in some of the interfaces that makes room for a new one. A neighbour
    /// that is only heard gives way to those that answer (RFC 6583 section 7), an interface with
    /// more neighbours to one with fewer; static ones never do.
    fn replaced_by(&self, key: Key, reason: Reason, within: Within) -> Option<Key> {
        let recycle = self.sides[side(key)].config.recycle;
        let own = self.shares.get(&place(key)).map_or(0, Share::replaceable);
        let is_larger = |at: Place, s: &Share| at != place(key) && s.replaceable() > own;
        if let Some((at, most)) = self.largest(key, within, Rank::Heard)
            && let Some((_, ip)) = most.heard.first()
            && (recycle || reason > Reason::Heard || is_larger(at, most))
        {
            return Some((at.0, *ip));
        }
        let (at, most) = self.largest(key, within, Rank::Replaceable)?;
        let gives_way = match reason {
            Reason::Heard => false,
            Reason::Awaited => is_larger(at, most),
            Reason::Configured => true,
        };
        let (_, ip) = most.needed.first().filter(|_| recycle || gives_way)?;
        Some((at.0, *ip))
    }
}
