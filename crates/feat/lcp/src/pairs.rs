//! The pairs on the main thread.

use crate::Error;
use crate::class::CLASSES;
use crate::gate::{OfWorker, Totals, totals};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thalweg_device::{Interfaces, SwIfIndex, VlanTag};
use thalweg_device_linux::NamespaceId;
use thalweg_device_tap as tap;
use thalweg_fib::Dpo;
use thalweg_graph::Control;

/// Most pairs: all TAPs that there can be, and as many sub-interfaces again.
pub const MAX_PAIRS: usize = 8192;

/// Origin of an interface's twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// A TAP device.
    Tap,
    /// A TUN device.
    Tun,
    /// A VLAN link on the twin of another interface.
    Vlan {
        /// Its tag.
        tag: VlanTag,
        /// The interface of which it is a part, by one tag or both.
        upper: SwIfIndex,
        /// The router's end of the TAP that carries its frames.
        tap: SwIfIndex,
        /// The link, if it is there.
        link: Option<VlanLink>,
    },
}

/// A VLAN link that is a twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanLink {
    /// Its index in its namespace.
    pub ifindex: u32,
    /// The link that it is on: its namespace, and its index there.
    pub on: Place,
    /// The link was there before.
    pub adopted: bool,
}

/// The place of a link: its namespace, and its index there.
pub type Place = (NamespaceId, u32);

/// A pair.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The interface.
    pub phy: SwIfIndex,
    /// The router's end of the twin.
    pub host: SwIfIndex,
    /// The twin's name, as it was made.
    pub name: String,
    /// Its network namespace; `None` for the router's own.
    pub namespace: Option<String>,
    /// Origin of the twin.
    pub made: Made,
    /// Forwarding objects by which IPv4 and IPv6 packets of the twin leave.
    pub to: [Dpo; 2],
    /// Counters of punted packets.
    pub(crate) counts: Arc<[OfWorker]>,
    /// A replacement of all pairs has begun, and not named it yet.
    pub(crate) stale: bool,
}

/// Pairs by number: the lowest free one is taken.
#[derive(Default)]
pub struct Pairs {
    pool: Vec<Option<Pair>>,
    by_phy: BTreeMap<SwIfIndex, usize>,
    by_host: BTreeMap<SwIfIndex, usize>,
    /// Interfaces whose twins are on that of another one.
    above: BTreeMap<SwIfIndex, BTreeSet<SwIfIndex>>,
}

impl Pairs {
    /// All pairs, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Pair> {
        self.pool.iter().flatten()
    }

    /// Returns the pair of an interface.
    pub fn of_phy(&self, phy: SwIfIndex) -> Option<&Pair> {
        self.pool.get(*self.by_phy.get(&phy)?)?.as_ref()
    }

    /// Returns the pair of a router's end.
    pub fn of_host(&self, host: SwIfIndex) -> Option<&Pair> {
        self.pool.get(*self.by_host.get(&host)?)?.as_ref()
    }

    /// All interfaces that have a twin.
    pub fn phys(&self) -> impl Iterator<Item = SwIfIndex> + '_ {
        self.by_phy.keys().copied()
    }

    /// Returns the number of the next pair.
    ///
    /// # Errors
    /// [`Error::Full`].
    pub(crate) fn next(&self) -> Result<u32, Error> {
        let free = self.pool.iter().position(Option::is_none).unwrap_or(self.pool.len());
        if free < MAX_PAIRS { Ok(free as u32) } else { Err(Error::Full(MAX_PAIRS)) }
    }

    /// Adds a pair with a number that [`next`](Self::next) has returned.
    pub(crate) fn add(&mut self, number: u32, pair: Pair) {
        let at = number as usize;
        self.by_phy.insert(pair.phy, at);
        self.by_host.insert(pair.host, at);
        if let Made::Vlan { upper, .. } = pair.made {
            self.above.entry(upper).or_default().insert(pair.phy);
        }
        self.pool.resize_with(self.pool.len().max(at + 1), || None);
        self.pool[at] = Some(pair);
    }

    /// Removes the pair of an interface.
    pub(crate) fn remove(&mut self, phy: SwIfIndex) -> Option<Pair> {
        let at = self.by_phy.remove(&phy)?;
        let pair = self.pool.get_mut(at)?.take()?;
        self.by_host.remove(&pair.host);
        if let Made::Vlan { upper, .. } = pair.made
            && let Some(all) = self.above.get_mut(&upper)
        {
            all.remove(&phy);
            if all.is_empty() {
                self.above.remove(&upper);
            }
        }
        while self.pool.last().is_some_and(Option::is_none) {
            self.pool.pop();
        }
        Some(pair)
    }

    /// Notes that the VLAN link of a pair is another one, or away.
    pub(crate) fn set_link(&mut self, phy: SwIfIndex, to: Option<VlanLink>) {
        let at = self.by_phy.get(&phy).copied();
        let pair = at.and_then(|at| self.pool.get_mut(at)?.as_mut());
        if let Some(Pair { made: Made::Vlan { link, .. }, .. }) = pair {
            *link = to;
        }
    }

    /// Returns the interfaces whose twins are on that of another one.
    pub fn above(&self, phy: SwIfIndex) -> Vec<SwIfIndex> {
        self.above.get(&phy).into_iter().flatten().copied().collect()
    }

    /// Marks all pairs as stale.
    pub fn begin_replacing(&mut self) {
        self.pool.iter_mut().flatten().for_each(|pair| pair.stale = true);
    }

    /// Notes that a replacement of all pairs names one; returns whether there is such a pair, and
    /// it had not been named yet.
    pub(crate) fn keep(&mut self, phy: SwIfIndex) -> bool {
        let at = self.by_phy.get(&phy).copied();
        let pair = at.and_then(|at| self.pool.get_mut(at)?.as_mut());
        pair.is_some_and(|pair| std::mem::take(&mut pair.stale))
    }

    /// Returns the interfaces whose pairs are stale.
    pub fn stale(&self) -> Vec<SwIfIndex> {
        self.iter().filter(|pair| pair.stale).map(|pair| pair.phy).collect()
    }
}

/// A pair as `show` commands and messages see it.
#[derive(Clone, Debug)]
pub struct PairView {
    /// Its number.
    pub number: usize,
    /// The pair.
    pub pair: Pair,
    /// Name of the interface.
    pub phy: String,
    /// Name of the router's end.
    pub host: String,
    /// Name of the twin now.
    pub name: String,
    /// The twin's index in its namespace.
    pub ifindex: u32,
    /// The twin is not there now.
    pub is_away: bool,
    /// Punted packets, by class.
    pub punted: [Totals; CLASSES],
}

impl PairView {
    /// `tap` or `tun`.
    pub fn kind(&self) -> &'static str {
        if self.pair.made == Made::Tun { "tun" } else { "tap" }
    }
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Pairs::default());
}

/// Returns all pairs, by number.
pub fn all(c: &Control) -> Vec<PairView> {
    let pairs = c.state::<Pairs>();
    let pairs = pairs.borrow();
    let numbered = pairs.pool.iter().enumerate();
    numbered.filter_map(|(number, pair)| Some(view(c, number, pair.as_ref()?))).collect()
}

/// Returns the pair of an interface.
pub fn get(c: &Control, phy: SwIfIndex) -> Option<PairView> {
    let pairs = c.state::<Pairs>();
    let pairs = pairs.borrow();
    let number = *pairs.by_phy.get(&phy)?;
    pairs.of_phy(phy).map(|pair| view(c, number, pair))
}

/// Returns the index that the twin of an interface has in the kernel, or had there last.
pub fn ifindex(c: &Control, phy: SwIfIndex) -> Option<u32> {
    get(c, phy).map(|pair| pair.ifindex).filter(|index| *index > 0)
}

fn view(c: &Control, number: usize, pair: &Pair) -> PairView {
    let name = |sw_if: SwIfIndex, gone: &str| {
        let all = c.state::<Interfaces>();
        let all = all.borrow();
        all.get(sw_if).map_or_else(|| gone.to_owned(), |view| view.name.clone())
    };
    let end = match pair.made {
        Made::Vlan { tap, .. } => tap::host(c, tap),
        Made::Tap | Made::Tun => tap::host(c, pair.host),
    };
    let (ifindex, now) = match (&pair.made, &end) {
        (Made::Vlan { link, .. }, _) => (link.map_or(0, |link| link.ifindex), pair.name.clone()),
        (_, Some(end)) => (end.ifindex, end.name.clone()),
        (_, None) => (0, pair.name.clone()),
    };
    let has_no_link = matches!(pair.made, Made::Vlan { link: None, .. });
    PairView {
        number,
        phy: name(pair.phy, "<no-phy-if>"),
        host: name(pair.host, "<no-host-if>"),
        name: now,
        ifindex,
        is_away: has_no_link || end.is_none_or(|end| end.is_away),
        punted: totals(&pair.counts),
        pair: pair.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(phy: u32) -> Pair {
        Pair {
            phy: SwIfIndex(phy),
            host: SwIfIndex(phy + 100),
            name: format!("e{phy}"),
            namespace: None,
            made: Made::Tap,
            to: [Dpo(0); 2],
            counts: Arc::new([]),
            stale: false,
        }
    }

    fn add(pairs: &mut Pairs, phy: u32) -> u32 {
        let number = pairs.next().unwrap();
        pairs.add(number, pair(phy));
        number
    }

    #[test]
    fn the_lowest_number_is_taken_again() {
        let mut pairs = Pairs::default();
        assert_eq!([1, 2, 3].map(|phy| add(&mut pairs, phy)), [0, 1, 2]);
        assert!(pairs.remove(SwIfIndex(2)).is_some() && pairs.remove(SwIfIndex(2)).is_none());
        assert_eq!([7, 8].map(|phy| add(&mut pairs, phy)), [1, 3]);
        assert_eq!(pairs.of_host(SwIfIndex(107)).map(|p| p.phy), Some(SwIfIndex(7)));
        assert!(pairs.of_host(SwIfIndex(102)).is_none());
        for phy in [1, 3, 7, 8] {
            pairs.remove(SwIfIndex(phy));
        }
        assert_eq!((pairs.pool.len(), pairs.next().unwrap()), (0, 0));
    }

    #[test]
    fn twins_on_another_one_are_known() {
        let mut pairs = Pairs::default();
        let tag = VlanTag::dot1q(10);
        let on = |phy: u32, upper: u32| {
            let (upper, tap) = (SwIfIndex(upper), SwIfIndex(101));
            Pair { made: Made::Vlan { tag, upper, tap, link: None }, ..pair(phy) }
        };
        for (number, pair) in [pair(1), on(2, 1), on(3, 2), on(4, 1)].into_iter().enumerate() {
            pairs.add(number as u32, pair);
        }
        let above = |pairs: &Pairs, phy| pairs.above(SwIfIndex(phy));
        assert_eq!(above(&pairs, 1), [SwIfIndex(2), SwIfIndex(4)]);
        assert_eq!((above(&pairs, 2), above(&pairs, 3)), (vec![SwIfIndex(3)], vec![]));
        for phy in [2, 4, 3] {
            pairs.remove(SwIfIndex(phy));
        }
        assert!(pairs.above.is_empty());
    }

    #[test]
    fn there_is_a_limit() {
        let mut pairs = Pairs::default();
        (1..=MAX_PAIRS as u32).for_each(|phy| _ = add(&mut pairs, phy));
        assert!(pairs.next().unwrap_err().to_string().contains("8192"));
        pairs.remove(SwIfIndex(5));
        assert_eq!(pairs.next().unwrap(), 4);
    }

    #[test]
    fn a_replacement_keeps_what_it_names() {
        let mut pairs = Pairs::default();
        assert_eq!([1, 2].map(|phy| add(&mut pairs, phy)), [0, 1]);
        assert!(!pairs.keep(SwIfIndex(1)), "no replacement has begun");
        pairs.begin_replacing();
        assert!(pairs.keep(SwIfIndex(1)) && !pairs.keep(SwIfIndex(1)));
        assert!(!pairs.keep(SwIfIndex(9)));
        add(&mut pairs, 3);
        assert_eq!(pairs.stale(), [SwIfIndex(2)]);
    }
}
