//! Feature arcs: the features that a packet passes, chosen per interface.
//!
//! The main thread interns each combination of features, taps and end as a *chain*: for each place
//! on the arc, the node that comes next. An interface has the number of its chain, so a packet
//! carries no position: the node it is in, the arc and the interface determine where it goes next.
//! A change of an interface stores one number. An interface without features costs two table
//! look-ups per frame.

use crate::decl::{ArcDecl, ArcId, ArcKey, NodeId, Stage};
use crate::stats::MAX_INTERFACES;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{
    AtomicU16, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use thalweg_buffer::SwIfIndex;
use thalweg_tables::qsbr::Domain;
use thalweg_tables::{IndexPool, SparseArray, zeroable};

/// Maximum number of features on an arc.
pub const MAX_FEATURES: usize = 28;
/// Maximum number of taps on an arc.
const MAX_TAPS: usize = 32;
/// Maximum number of chains of an arc: combinations of features, taps and end that interfaces have.
pub const MAX_CHAINS: usize = 16_384;

zeroable! {
    /// Next nodes of an interface's packets on an arc.
    #[repr(align(64))]
    struct Chain {
        /// First feature, or the end.
        first: AtomicU16,
        end: AtomicU16,
        /// Taps, one bit each.
        taps: AtomicU32,
        /// Node after each feature, also after those that are off: a packet may be in one that was
        /// on a moment ago.
        next: [AtomicU16; MAX_FEATURES],
    }
}

const _: () = assert!(size_of::<Chain>() == 64);

/// One arc, as workers read it.
pub(crate) struct ArcRow {
    pub(crate) key: ArcKey,
    /// Number of each interface's chain. 0: no features, and the end that the arc declares.
    numbers: SparseArray<AtomicU16, MAX_INTERFACES>,
    /// Chains by number. One that is in use does not change.
    chains: SparseArray<Chain, MAX_CHAINS>,
    /// Number of interfaces with another chain than 0.
    users: AtomicU32,
}

impl ArcRow {
    #[inline(always)]
    fn chain(&self, sw_if: SwIfIndex) -> &Chain {
        // The chain was written before its number.
        self.chains.at(self.numbers.at(sw_if).load(Acquire))
    }
}

/// All arcs as workers read them. They change in place.
#[derive(Default)]
pub struct ArcTable {
    pub(crate) arcs: Vec<ArcRow>,
}

impl ArcTable {
    /// Returns whether any interface has features on an arc, or an end of its own.
    #[inline(always)]
    pub fn is_used(&self, arc: ArcId) -> bool {
        self.arcs.get(arc.0 as usize).is_some_and(|a| a.users.load(Relaxed) != 0)
    }
    /// Returns the first feature of an interface, if any.
    #[inline]
    pub fn first(&self, arc: ArcId, sw_if: SwIfIndex) -> Option<NodeId> {
        let chain = self.arcs.get(arc.0 as usize)?.chain(sw_if);
        let (first, end) = (chain.first.load(Relaxed), chain.end.load(Relaxed));
        (first != end).then_some(NodeId(first))
    }
    /// Returns the first feature, or the arc's end.
    #[inline]
    pub fn start(&self, arc: ArcId, sw_if: SwIfIndex) -> NodeId {
        let row = self.arcs.get(arc.0 as usize);
        NodeId(row.map_or(0, |a| a.chain(sw_if).first.load(Relaxed)))
    }
    /// Returns the node to which the feature in `slot` of `arc` passes packets of `sw_if`.
    #[inline]
    pub(crate) fn next(&self, arc: ArcId, slot: u16, sw_if: SwIfIndex) -> NodeId {
        let next = |a: &ArcRow| Some(a.chain(sw_if).next.get(slot as usize)?.load(Relaxed));
        NodeId(self.arcs.get(arc.0 as usize).and_then(next).unwrap_or(0))
    }
    /// Returns the taps of an interface, one bit each.
    #[inline]
    pub(crate) fn taps(&self, arc: ArcId, sw_if: SwIfIndex) -> u32 {
        self.arcs.get(arc.0 as usize).map_or(0, |a| a.chain(sw_if).taps.load(Relaxed))
    }
}

/// Features and taps of an interface on an arc.
#[derive(Default)]
struct OnInterface {
    /// Enabled features and taps, with a reference count (two owners may enable the same).
    uses: BTreeMap<&'static str, u32>,
    /// Node after the last feature, if it has its own.
    end: Option<NodeId>,
}

/// Parts that distinguish one chain of an arc from another.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct ChainKey {
    /// Features in arc order, one bit each.
    features: u32,
    taps: u32,
    end: Option<NodeId>,
}

/// The chains in use.
struct Chains {
    numbers: HashMap<ChainKey, u16>,
    /// Key and number of users of each chain.
    users: Vec<(ChainKey, u32)>,
    pool: IndexPool,
}

/// The main thread's side of one arc.
pub(crate) struct ArcConfig {
    pub(crate) decl: &'static ArcDecl,
    end: NodeId,
    /// Features in arc order.
    pub(crate) features: Vec<(&'static str, NodeId)>,
    pub(crate) taps: Vec<(&'static str, NodeId)>,
    interfaces: BTreeMap<SwIfIndex, OnInterface>,
    chains: Chains,
}

/// A constraint that cannot be met, or an unknown name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArcError {
    /// No arc of that name.
    #[error("unknown feature arc `{0}`")]
    UnknownArc(String),
    /// No feature of that name on the arc.
    #[error("no feature `{feature}` on arc `{arc}`")]
    UnknownFeature {
        /// The arc.
        arc: String,
        /// The requested feature.
        feature: String,
    },
    /// Interfaces have too many combinations of features.
    #[error(
        "arc `{arc}`: no room for another combination of features and end; the limit is \
         {MAX_CHAINS}: disable features on some interfaces"
    )]
    Full {
        /// The arc.
        arc: &'static str,
    },
    /// The arc has too many features or taps.
    #[error("arc `{arc}`: the limit is {MAX_FEATURES} features and {MAX_TAPS} taps")]
    TooMany {
        /// The arc.
        arc: &'static str,
    },
    /// Features whose ordering constraints contradict each other.
    #[error("arc `{arc}`: circular order of features {features:?}")]
    Circle {
        /// The arc.
        arc: String,
        /// Features that could not be ordered.
        features: Vec<String>,
    },
}

impl ArcConfig {
    pub(crate) fn new(
        decl: &'static ArcDecl,
        end: NodeId,
        features: Vec<(&'static crate::NodeDecl, NodeId)>,
        taps: Vec<(&'static str, NodeId)>,
    ) -> Result<ArcConfig, ArcError> {
        if features.len() > MAX_FEATURES || taps.len() > MAX_TAPS {
            return Err(ArcError::TooMany { arc: decl.name });
        }
        let features = order(decl.name, features)?;
        let interfaces = BTreeMap::new();
        Ok(ArcConfig { decl, end, features, taps, interfaces, chains: Chains::new() })
    }

    /// Makes what workers read: no interface has a feature yet.
    pub(crate) fn row(&self) -> ArcRow {
        let row = ArcRow {
            key: self.decl.key,
            numbers: SparseArray::default(),
            chains: SparseArray::default(),
            users: AtomicU32::new(0),
        };
        self.write(row.chains.at(0_u32), ChainKey::default());
        row
    }

    /// Enables or disables a feature or tap; returns the interface's taps if they changed.
    pub(crate) fn set(
        &mut self,
        (row, domain): (&ArcRow, &Domain),
        feature: &str,
        sw_if: SwIfIndex,
        on: bool,
    ) -> Result<Option<u32>, ArcError> {
        let known = self.features.iter().chain(&self.taps).find(|(n, _)| *n == feature);
        let Some(&(name, _)) = known else {
            let (arc, feature) = (self.decl.name.into(), feature.into());
            return Err(ArcError::UnknownFeature { arc, feature });
        };
        let uses = self.interfaces.entry(sw_if).or_default().uses.entry(name).or_default();
        let before = *uses;
        *uses = if on { before + 1 } else { before.saturating_sub(1) };
        let undo = move |i: &mut OnInterface| _ = i.uses.insert(name, before);
        self.follow((row, domain), sw_if, undo)
    }

    /// Sets an interface's own end.
    pub(crate) fn set_end(
        &mut self,
        (row, domain): (&ArcRow, &Domain),
        sw_if: SwIfIndex,
        end: Option<NodeId>,
    ) -> Result<(), ArcError> {
        let end = end.filter(|end| *end != self.end);
        let before = std::mem::replace(&mut self.interfaces.entry(sw_if).or_default().end, end);
        self.follow((row, domain), sw_if, move |i| i.end = before).map(|_| ())
    }

    /// Removes all state of an interface; returns true if it had taps.
    pub(crate) fn remove_interface(
        &mut self,
        (row, domain): (&ArcRow, &Domain),
        sw_if: SwIfIndex,
    ) -> bool {
        self.interfaces.remove(&sw_if);
        // Chain 0 always exists, so this cannot fail.
        matches!(self.follow((row, domain), sw_if, |_| ()), Ok(Some(_)))
    }

    /// Gives an interface the chain of its state. Without room for one, `undo` restores the state.
    fn follow(
        &mut self,
        (row, domain): (&ArcRow, &Domain),
        sw_if: SwIfIndex,
        undo: impl FnOnce(&mut OnInterface),
    ) -> Result<Option<u32>, ArcError> {
        let (key, cell) = (self.key(sw_if), row.numbers.at(sw_if));
        let old = cell.load(Relaxed);
        let old_key = self.chains.key(old);
        if key == old_key {
            return Ok(None);
        }
        let Some((number, is_new)) = self.chains.take(domain, key) else {
            self.interfaces.get_mut(&sw_if).map(undo);
            return Err(ArcError::Full { arc: self.decl.name });
        };
        if is_new {
            self.write(row.chains.at(number), key);
        }
        cell.store(number, Release);
        let users = row.users.load(Relaxed) + u32::from(number != 0) - u32::from(old != 0);
        row.users.store(users, Relaxed);
        self.chains.give_back(domain, old);
        Ok((key.taps != old_key.taps).then_some(key.taps))
    }

    fn key(&self, sw_if: SwIfIndex) -> ChainKey {
        let Some(i) = self.interfaces.get(&sw_if) else { return ChainKey::default() };
        let bits = |list: &[(&'static str, NodeId)]| {
            let on = |n: &str| u32::from(i.uses.get(n).is_some_and(|u| *u > 0));
            list.iter().enumerate().fold(0, |bits, (at, (name, _))| bits | on(name) << at)
        };
        ChainKey { features: bits(&self.features), taps: bits(&self.taps), end: i.end }
    }

    /// Returns the features that packets of an interface visit, in order, and its taps last: as
    /// workers read them.
    pub(crate) fn enabled(&self, row: &ArcRow, sw_if: SwIfIndex) -> Vec<&'static str> {
        let chain = row.chain(sw_if);
        let (end, taps) = (chain.end.load(Relaxed), chain.taps.load(Relaxed));
        let mut at = chain.first.load(Relaxed);
        let visits = self.features.iter().enumerate().filter_map(|(slot, (name, id))| {
            let is_next = at != end && at == id.0;
            if is_next {
                at = chain.next[slot].load(Relaxed);
            }
            is_next.then_some(*name)
        });
        let mut all: Vec<_> = visits.collect();
        let on = |(bit, (name, _)): (usize, &(&'static str, NodeId))| {
            (taps >> bit & 1 != 0).then_some(*name)
        };
        all.extend(self.taps.iter().enumerate().filter_map(on));
        all
    }

    /// Writes a chain that no interface has.
    fn write(&self, chain: &Chain, key: ChainKey) {
        let mut next = key.end.unwrap_or(self.end).0;
        chain.end.store(next, Relaxed);
        chain.next[self.features.len()..].iter().for_each(|n| n.store(next, Relaxed));
        for (slot, (_, id)) in self.features.iter().enumerate().rev() {
            chain.next[slot].store(next, Relaxed);
            if key.features >> slot & 1 == 1 {
                next = id.0;
            }
        }
        chain.first.store(next, Relaxed);
        chain.taps.store(key.taps, Relaxed);
    }
}

impl Chains {
    fn new() -> Chains {
        let mut pool = IndexPool::new(MAX_CHAINS as u32);
        // Number 0, which is never given back.
        let first = pool.alloc_ready();
        debug_assert_eq!(first, Ok(0));
        let key = ChainKey::default();
        Chains { numbers: HashMap::from([(key, 0)]), users: vec![(key, 1)], pool }
    }

    fn key(&self, number: u16) -> ChainKey {
        self.users[usize::from(number)].0
    }

    /// Returns the number of a chain for one more user, and whether it is new.
    fn take(&mut self, domain: &Domain, key: ChainKey) -> Option<(u16, bool)> {
        if let Some(number) = self.numbers.get(&key) {
            self.users[usize::from(*number)].1 += 1;
            return Some((*number, false));
        }
        let number = self.pool.alloc(domain).ok()?;
        if self.users.len() <= number as usize {
            self.users.resize(number as usize + 1, (key, 0));
        }
        self.users[number as usize] = (key, 1);
        self.numbers.insert(key, number as u16);
        Some((number as u16, true))
    }

    /// Ends a use. A chain without users is reused once no worker can be reading it.
    fn give_back(&mut self, domain: &Domain, number: u16) {
        let (key, users) = &mut self.users[usize::from(number)];
        if number != 0 {
            *users -= 1;
            if *users == 0 {
                self.numbers.remove(key);
                // The number was allocated, so this cannot fail.
                let _ = self.pool.free_after(number.into(), domain.tag());
            }
        }
    }
}

/// Orders features by stage, and within one so that every `before` and `after` holds; by name where
/// neither applies.
fn order(
    arc: &str,
    mut left: Vec<(&'static crate::NodeDecl, NodeId)>,
) -> Result<Vec<(&'static str, NodeId)>, ArcError> {
    let stage = |d: &crate::NodeDecl| d.feature.map_or(Stage::default(), |f| f.stage);
    left.sort_by_key(|(d, _)| (stage(d), d.name));
    let mut done: Vec<(&'static str, NodeId)> = Vec::new();
    while !left.is_empty() {
        let waits = |d: &crate::NodeDecl| {
            left.iter().any(|(o, _)| {
                let of =
                    |f: fn(&crate::decl::FeatureDecl) -> &'static [&'static str],
                     d: &crate::NodeDecl| d.feature.as_ref().map_or(&[][..], f);
                o.name != d.name
                    && stage(o) == stage(d)
                    && (of(|f| f.after, d).contains(&o.name)
                        || of(|f| f.before, o).contains(&d.name))
            })
        };
        let Some(i) = left.iter().position(|(d, _)| !waits(d)) else {
            let features = left.iter().map(|(d, _)| d.name.to_string()).collect();
            return Err(ArcError::Circle { arc: arc.into(), features });
        };
        let (d, id) = left.remove(i);
        done.push((d.name, id));
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decl::FeatureDecl;
    use proptest::prelude::*;

    static DECL: ArcDecl = ArcDecl { name: "test", key: ArcKey::Rx, end: "end" };
    static NODES: [crate::NodeDecl; 3] = [
        crate::NodeDecl { name: "a", ..crate::NodeDecl::DEFAULT },
        crate::NodeDecl { name: "b", ..crate::NodeDecl::DEFAULT },
        crate::NodeDecl { name: "c", ..crate::NodeDecl::DEFAULT },
    ];
    const END: NodeId = NodeId(50);

    fn arc() -> ArcConfig {
        let features = NODES.iter().zip(1..).map(|(d, id)| (d, NodeId(id))).collect();
        let taps = vec![("tap", NodeId(9))];
        ArcConfig::new(&DECL, END, features, taps).unwrap()
    }

    fn chains(arc: &ArcConfig) -> usize {
        arc.chains.pool.len()
    }

    #[test]
    fn stages_come_before_names_and_wishes_within_a_stage() {
        const fn node(name: &'static str, place: FeatureDecl) -> crate::NodeDecl {
            crate::NodeDecl { name, feature: Some(place), ..crate::NodeDecl::DEFAULT }
        }
        const ON: FeatureDecl = FeatureDecl::on("test");
        static ALL: [crate::NodeDecl; 5] = [
            node("a", ON.at(Stage::Translation)),
            node("b", ON.at(Stage::Translation).before(&["a"])),
            node("c", ON.after(&["d"])),
            node("d", ON),
            // Wishes across stages say nothing.
            node("e", ON.at(Stage::Admission).after(&["a"])),
        ];
        let names = |all: &'static [crate::NodeDecl]| {
            let all = all.iter().map(|d| (d, NodeId(1))).collect();
            order("test", all).map(|all| all.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names(&ALL).unwrap(), ["e", "d", "c", "b", "a"]);
        static CIRCLE: [crate::NodeDecl; 2] =
            [node("a", ON.before(&["b"])), node("b", ON.before(&["a"]))];
        assert!(names(&CIRCLE).is_err());
    }

    #[test]
    fn interfaces_with_the_same_features_share_a_chain() {
        let (mut arc, domain) = (arc(), Domain::new());
        let table = ArcTable { arcs: vec![arc.row()] };
        let to = (&table.arcs[0], &*domain);
        for sw_if in 0..60_000 {
            assert_eq!(arc.set(to, "b", SwIfIndex(sw_if), true), Ok(None));
        }
        assert_eq!(chains(&arc), 2);
        assert_eq!(arc.set(to, "tap", SwIfIndex(59_999), true), Ok(Some(1)));
        assert_eq!((chains(&arc), table.taps(ArcId(0), SwIfIndex(59_999))), (3, 1));
        for sw_if in 0..60_000 {
            arc.remove_interface(to, SwIfIndex(sw_if));
        }
        assert_eq!((chains(&arc), arc.chains.numbers.len()), (1, 1));
        assert_eq!(table.start(ArcId(0), SwIfIndex(59_999)), END);
    }

    #[test]
    fn a_full_arc_is_an_error_and_changes_nothing() {
        let (mut arc, domain) = (arc(), Domain::new());
        let mut reader = domain.register().unwrap();
        reader.enter();
        let table = ArcTable { arcs: vec![arc.row()] };
        let to = (&table.arcs[0], &*domain);
        for sw_if in 1..MAX_CHAINS as u32 {
            arc.set_end(to, SwIfIndex(sw_if), Some(NodeId(100 + sw_if as u16))).unwrap();
        }
        let full = ArcError::Full { arc: "test" };
        assert_eq!(arc.set(to, "a", SwIfIndex(20_000), true), Err(full));
        assert_eq!(
            (table.start(ArcId(0), SwIfIndex(20_000)), arc.enabled(to.0, SwIfIndex(20_000))),
            (END, vec![])
        );
        arc.remove_interface(to, SwIfIndex(7));
        assert!(
            arc.set(to, "a", SwIfIndex(20_000), true).is_err(),
            "a worker may be reading the chain"
        );
        reader.enter();
        assert_eq!(arc.set(to, "a", SwIfIndex(20_000), true), Ok(None));
        assert_eq!(table.start(ArcId(0), SwIfIndex(20_000)), NodeId(1));
    }

    proptest! {
        /// Results are as if chains were walked feature by feature, whatever was enabled, disabled
        /// and removed.
        #[test]
        fn chains_are_what_interfaces_have(
            ops in prop::collection::vec((0u32..6, 0usize..6, any::<bool>()), 1..120),
        ) {
            let (mut arc, domain) = (arc(), Domain::new());
            let mut reader = domain.register().unwrap();
            let table = ArcTable { arcs: vec![arc.row()] };
            let to = (&table.arcs[0], &*domain);
            let mut model = [([0u32; 3], 0u32, END); 6];
            for (sw_if, what, on) in ops {
                let sw_if = SwIfIndex(sw_if);
                let (uses, taps, end) = &mut model[sw_if.index()];
                let step = |n: &mut u32| *n = if on { *n + 1 } else { n.saturating_sub(1) };
                match what {
                    0..3 => {
                        step(&mut uses[what]);
                        arc.set(to, NODES[what].name, sw_if, on).unwrap();
                    }
                    3 => {
                        let had = *taps > 0;
                        step(taps);
                        let changed = arc.set(to, "tap", sw_if, on).unwrap();
                        prop_assert_eq!(changed.is_some(), had != (*taps > 0));
                    }
                    4 => {
                        *end = if on { NodeId(60 + sw_if.0 as u16) } else { END };
                        arc.set_end(to, sw_if, on.then_some(*end)).unwrap();
                    }
                    _ => {
                        arc.remove_interface(to, sw_if);
                        model[sw_if.index()] = ([0; 3], 0, END);
                    }
                }
                reader.enter();
                for (sw_if, (uses, taps, end)) in model.iter().enumerate() {
                    let after = |from: usize| {
                        (from..3).find(|f| uses[*f] > 0).map_or(*end, |f| NodeId(f as u16 + 1))
                    };
                    let i = sw_if as u32;
                    prop_assert_eq!(table.start(ArcId(0), SwIfIndex(i)), after(0));
                    prop_assert_eq!(table.first(ArcId(0), SwIfIndex(i)), Some(after(0)).filter(|n| n != end));
                    for slot in 0..3u16 {
                        prop_assert_eq!(table.next(ArcId(0), slot, SwIfIndex(i)), after(slot as usize + 1));
                    }
                    prop_assert_eq!(table.taps(ArcId(0), SwIfIndex(i)), u32::from(*taps > 0));
                    let on = (0..3).filter(|f| uses[*f] > 0).map(|f| NODES[f].name);
                    let on: Vec<_> = on.chain((*taps > 0).then_some("tap")).collect();
                    prop_assert_eq!(arc.enabled(to.0, SwIfIndex(i)), on);
                }
                let plain = |m: &([u32; 3], u32, NodeId)| *m == ([0; 3], 0, END);
                prop_assert_eq!(table.is_used(ArcId(0)), !model.iter().all(plain));
            }
        }
    }
}
