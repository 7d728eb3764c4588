//! Feature arcs: the features that a packet passes, chosen per interface.
//!
//! The main thread compiles each interface's features into next-node tables, so that a packet
//! carries no position: the node it is in, the arc and the interface determine where it goes next.
//! An interface without features costs one table lookup per frame.

use crate::decl::{ArcDecl, ArcId, ArcKey, NodeId};
use std::collections::BTreeMap;

const NONE: u16 = u16::MAX;

/// One arc, compiled.
#[derive(Clone, Debug)]
pub(crate) struct ArcRow {
    pub(crate) key: ArcKey,
    end: u16,
    /// Node after the last feature, for interfaces that have their own.
    ends: Vec<u16>,
    /// First feature by interface.
    first: Vec<u16>,
    /// Feature after feature `slot`, by interface.
    next: Vec<Vec<u16>>,
    /// Taps by interface, one bit each.
    taps: Vec<u32>,
}

fn at(v: &[u16], i: u32) -> Option<NodeId> {
    match v.get(i as usize) {
        Some(&n) if n != NONE => Some(NodeId(n)),
        _ => None,
    }
}

impl ArcRow {
    #[inline]
    fn end(&self, sw_if: u32) -> NodeId {
        at(&self.ends, sw_if).unwrap_or(NodeId(self.end))
    }
    #[inline]
    fn tap_mask(&self, sw_if: u32) -> u32 {
        self.taps.get(sw_if as usize).copied().unwrap_or(0)
    }
}

/// All arcs as workers read them.
#[derive(Clone, Debug, Default)]
pub struct ArcTable {
    pub(crate) arcs: Vec<ArcRow>,
    /// Differs from the number of every earlier table.
    pub(crate) generation: u64,
}

impl ArcTable {
    /// Returns the first feature of an interface, if any.
    #[inline]
    pub fn first(&self, arc: ArcId, sw_if: u32) -> Option<NodeId> {
        self.arcs.get(arc.0 as usize).and_then(|a| at(&a.first, sw_if))
    }
    /// Returns the first feature, or the arc's end.
    #[inline]
    pub fn start(&self, arc: ArcId, sw_if: u32) -> NodeId {
        match self.arcs.get(arc.0 as usize) {
            Some(a) => at(&a.first, sw_if).unwrap_or_else(|| a.end(sw_if)),
            None => NodeId(0),
        }
    }
    /// Returns the node to which the feature in `slot` of `arc` passes packets of `sw_if`.
    #[inline]
    pub(crate) fn next(&self, arc: ArcId, slot: u16, sw_if: u32) -> NodeId {
        match self.arcs.get(arc.0 as usize) {
            Some(a) => {
                a.next.get(slot as usize).and_then(|v| at(v, sw_if)).unwrap_or_else(|| a.end(sw_if))
            }
            None => NodeId(0),
        }
    }
    /// Returns the number of interfaces that have rows of taps.
    pub(crate) fn tap_rows(&self, arc: ArcId) -> usize {
        self.arcs.get(arc.0 as usize).map_or(0, |a| a.taps.len())
    }
    /// Returns the taps of an interface, one bit each.
    #[inline]
    pub(crate) fn taps(&self, arc: ArcId, sw_if: u32) -> u32 {
        self.arcs.get(arc.0 as usize).map_or(0, |a| a.tap_mask(sw_if))
    }
}

/// The main thread's side of one arc.
pub(crate) struct ArcConfig {
    pub(crate) decl: &'static ArcDecl,
    end: NodeId,
    /// Features in arc order.
    pub(crate) features: Vec<(&'static str, NodeId)>,
    pub(crate) taps: Vec<(&'static str, NodeId)>,
    /// Enabled features by interface, with a reference count (two owners may enable the same).
    enabled: BTreeMap<u32, BTreeMap<&'static str, u32>>,
    ends: BTreeMap<u32, NodeId>,
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
        let features = order(decl.name, features)?;
        Ok(ArcConfig { decl, end, features, taps, enabled: BTreeMap::new(), ends: BTreeMap::new() })
    }

    /// Enables or disables a feature or tap; returns true if the interface's chain changed.
    pub(crate) fn set(&mut self, feature: &str, sw_if: u32, on: bool) -> Result<bool, ArcError> {
        let known = self.features.iter().chain(&self.taps).find(|(n, _)| *n == feature);
        let Some(&(name, _)) = known else {
            let (arc, feature) = (self.decl.name.into(), feature.into());
            return Err(ArcError::UnknownFeature { arc, feature });
        };
        let row = self.enabled.entry(sw_if).or_default();
        let uses = row.entry(name).or_default();
        let before = *uses > 0;
        *uses = if on { *uses + 1 } else { uses.saturating_sub(1) };
        Ok(before != (*uses > 0))
    }

    pub(crate) fn set_end(&mut self, sw_if: u32, end: Option<NodeId>) {
        match end {
            Some(e) => self.ends.insert(sw_if, e),
            None => self.ends.remove(&sw_if),
        };
    }

    /// Removes all state of an interface.
    pub(crate) fn remove_interface(&mut self, sw_if: u32) {
        self.enabled.remove(&sw_if);
        self.ends.remove(&sw_if);
    }

    /// Returns the names of the features enabled on an interface, in order, taps last.
    pub(crate) fn enabled(&self, sw_if: u32) -> Vec<&'static str> {
        let Some(row) = self.enabled.get(&sw_if) else { return Vec::new() };
        let on = |n: &&'static str| row.get(n).is_some_and(|u| *u > 0);
        self.features.iter().chain(&self.taps).map(|(n, _)| *n).filter(on).collect()
    }

    pub(crate) fn compile(&self) -> ArcRow {
        let top = self.enabled.keys().chain(self.ends.keys()).max().map_or(0, |m| *m as usize + 1);
        let mut row = ArcRow {
            key: self.decl.key,
            end: self.end.0,
            ends: vec![NONE; top],
            first: vec![NONE; top],
            next: vec![vec![NONE; top]; self.features.len()],
            taps: vec![0; top],
        };
        for (sw_if, end) in &self.ends {
            row.ends[*sw_if as usize] = end.0;
        }
        for (sw_if, names) in &self.enabled {
            let i = *sw_if as usize;
            let on = |n: &str| names.get(n).is_some_and(|u| *u > 0);
            let mut last: Option<usize> = None;
            for (slot, (name, id)) in self.features.iter().enumerate() {
                if on(name) {
                    match last {
                        None => row.first[i] = id.0,
                        Some(l) => row.next[l][i] = id.0,
                    }
                    last = Some(slot);
                }
            }
            for (bit, (name, _)) in self.taps.iter().enumerate() {
                row.taps[i] |= u32::from(on(name)) << bit;
            }
        }
        row
    }
}

/// Orders features so that every `before` and `after` holds; by name where neither applies.
fn order(
    arc: &str,
    mut left: Vec<(&'static crate::NodeDecl, NodeId)>,
) -> Result<Vec<(&'static str, NodeId)>, ArcError> {
    left.sort_by_key(|(d, _)| d.name);
    let mut done: Vec<(&'static str, NodeId)> = Vec::new();
    while !left.is_empty() {
        let waits = |d: &crate::NodeDecl| {
            left.iter().any(|(o, _)| {
                let of =
                    |f: fn(&crate::decl::FeatureDecl) -> &'static [&'static str],
                     d: &crate::NodeDecl| d.feature.as_ref().map_or(&[][..], f);
                o.name != d.name
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
