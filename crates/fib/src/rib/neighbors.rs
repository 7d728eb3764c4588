//! Host routes of neighbours. Learned routes fill gaps of written ones, and never beat them: a
//! neighbour's route exists only while the longest other route around its address says that hosts
//! are on its link (VPP: an adjacency refines its cover), or no other route is around it. If
//! several neighbours have one address, a written one beats those that were only heard.

use super::entries::Entries;
use super::path::{Path, Source};
use super::{PathList, Table};
use std::collections::BTreeMap;
use std::ops::Bound;
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;
use thalweg_tables::{Address, Lpm, Prefix};

/// Place of a neighbour, and the source of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeighborOn {
    /// The interface.
    pub sw_if: SwIfIndex,
    /// The interface whose subnets this one borrows.
    pub lender: Option<SwIfIndex>,
    /// Written by an operator (static), not heard on the link.
    pub is_written: bool,
}

/// Neighbour that needs a host route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Claim {
    by: NeighborOn,
    /// Claims are numbered: of equal ones, the first counts as long as it stays.
    number: u64,
}

impl Claim {
    /// Rank among the neighbours with one address, the least first: a written one, then one on the
    /// interface that has the subnet, then the first. `covers`: whether the route around the
    /// address leads to an interface as a whole.
    fn rank(&self, covers: impl Fn(SwIfIndex) -> bool) -> Option<(bool, bool, u64)> {
        let NeighborOn { sw_if, lender, is_written } = self.by;
        let borrows = match lender {
            _ if covers(sw_if) => false,
            Some(lender) if covers(lender) => true,
            _ => return None,
        };
        Some((!is_written, borrows, self.number))
    }
}

/// Neighbours that need host routes, whatever the routes around them are.
pub(super) struct Claims<A> {
    all: BTreeMap<(A, SwIfIndex), Claim>,
    number: u64,
}

impl<A> Default for Claims<A> {
    fn default() -> Self {
        Claims { all: BTreeMap::new(), number: 0 }
    }
}

const LAST: SwIfIndex = SwIfIndex(u32::MAX);

impl<A: Address> Claims<A> {
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    fn of(&self, addr: A) -> impl Iterator<Item = &Claim> {
        self.all.range((addr, SwIfIndex(0))..=(addr, LAST)).map(|(_, claim)| claim)
    }

    /// Returns the first address behind `after`, up to `last`.
    fn next(&self, after: Bound<A>, last: A) -> Option<A> {
        let first = match after {
            Bound::Excluded(addr) => Bound::Excluded((addr, LAST)),
            Bound::Included(addr) => Bound::Included((addr, SwIfIndex(0))),
            Bound::Unbounded => Bound::Unbounded,
        };
        self.all.range((first, Bound::Included((last, LAST)))).next().map(|(key, _)| key.0)
    }
}

/// Returns the longest prefix around an address with a route of another source than neighbours.
fn cover<A: Address>(
    routes: &Entries<A>,
    addr: A,
    live: impl Fn(u32) -> bool,
) -> Option<(Prefix<A>, u32)> {
    let mut at = routes.covering(addr, A::BITS);
    while let Some(prefix) = at {
        let all = routes.all(prefix);
        let others = all.iter().filter(|(source, _)| *source != Source::Adjacency);
        if let Some((_, list)) = others.filter(|(_, list)| live(*list)).min() {
            return Some((prefix, *list));
        }
        at = prefix.len().checked_sub(1).and_then(|len| routes.covering(addr, len));
    }
    None
}

impl<A: Address, L: Lpm<A>> Table<A, L> {
    /// Sets whether a neighbour needs a host route: it has one while the longest other route around
    /// its address leads to its interface, or its lender, as a whole. Among several such neighbours
    /// with one address, written ones count before others, then one on the interface that has the
    /// subnet, and then the first.
    ///
    /// Returns the interface whose neighbour keeps the address from this one.
    pub fn set_neighbor(
        &mut self,
        c: &Control,
        addr: A,
        by: NeighborOn,
        wanted: bool,
    ) -> Option<SwIfIndex> {
        let claims = &mut self.claims;
        if wanted {
            claims.number += 1;
            let number = claims.number;
            claims.all.entry((addr, by.sw_if)).or_insert(Claim { by, number }).by = by;
        } else if claims.all.remove(&(addr, by.sw_if)).is_none() {
            return None;
        }
        self.judge(c, addr);
        let used = self.neighbor_of(addr)?;
        (wanted && used != by.sw_if).then_some(used)
    }

    /// Returns whether a neighbour needs a host route.
    #[must_use]
    pub fn claims(&self, addr: A, sw_if: SwIfIndex) -> bool {
        self.claims.all.contains_key(&(addr, sw_if))
    }

    /// The interface of a neighbour's host route.
    fn neighbor_of(&self, addr: A) -> Option<SwIfIndex> {
        self.paths(Prefix::host(addr), Source::Adjacency)?.first()?.sw_if
    }

    /// Returns the longest configured route around a prefix, if it leads elsewhere than to an
    /// interface as a whole. A default route leaves room for whatever is found.
    #[must_use]
    pub fn configured_elsewhere(&self, subnet: Prefix<A>, sw_if: SwIfIndex) -> Option<Prefix<A>> {
        let mut longest = subnet.len();
        loop {
            let prefix = self.routes.covering(subnet.addr(), longest).filter(|p| p.len() > 0)?;
            let written =
                self.routes.all(prefix).into_iter().find(|(source, _)| source.is_written());
            let list = written.and_then(|(_, id)| self.list(id));
            if let Some(list) = list.filter(|list| !list.paths.is_empty()) {
                return (!list.attaches(sw_if)).then_some(prefix);
            }
            longest = prefix.len() - 1;
        }
    }

    /// The longest route of another source around an address, and what it leads to.
    fn cover_of(&self, addr: A) -> Option<(Prefix<A>, &PathList)> {
        let live = |id| self.list(id).filter(|list| !list.paths.is_empty());
        let (prefix, id) = cover(&self.routes, addr, |id| live(id).is_some())?;
        Some((prefix, live(id)?))
    }

    /// Gives an address the host route of the neighbour that may have it, or none.
    fn judge(&mut self, c: &Control, addr: A) {
        let wanted = {
            let cover = self.cover_of(addr).map(|(_, list)| list);
            let covers = |sw_if| cover.is_none_or(|list| list.attaches(sw_if));
            let ranked = |claim: &Claim| Some((claim.rank(covers)?, claim.by.sw_if));
            self.claims.of(addr).filter_map(ranked).min().map(|(_, sw_if)| sw_if)
        };
        let host = Prefix::host(addr);
        match wanted {
            _ if wanted == self.neighbor_of(addr) => {}
            None => _ = self.unset(c, host, Source::Adjacency),
            Some(sw_if) => {
                let paths = vec![Path::via(addr.to_ip(), Some(sw_if))];
                if let Err(e) = self.set(c, host, Source::Adjacency, paths) {
                    tracing::warn!("neighbour {}: {e}", addr.to_ip());
                }
            }
        }
    }

    /// Judges again the neighbours whose longest cover is or was the route of this prefix.
    pub(super) fn judge_in(&mut self, c: &Control, changed: Prefix<A>) {
        let mut after = Bound::Included(changed.addr());
        while let Some(addr) = self.claims.next(after, changed.last()) {
            let longer = self.cover_of(addr).map(|(prefix, _)| prefix);
            after = Bound::Excluded(match longer.filter(|p| p.len() > changed.len()) {
                // Others in there have a longer cover, too.
                Some(longer) => longer.last(),
                None => {
                    self.judge(c, addr);
                    addr
                }
            });
        }
    }
}
