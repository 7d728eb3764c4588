//! The graph: nodes, what each may pass packets to, and the order of dispatch.

use super::{Control, EngineError, NodeEntry};
use crate::arc::{ArcConfig, ArcTable};
use crate::decl::{ArcId, Built, Kind, NodeDecl, NodeId};
use crate::mailbox::ToWorker;
use crate::part::Part;
use crate::stats::{MAX_ERRORS, MAX_NODES};
use crate::worker::NodeInfo;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use thalweg_tables::qsbr::{Domain, Tag};

impl Control {
    /// Enters all nodes and arcs into the registry and checks that all names resolve.
    pub(super) fn register(&mut self, parts: &[Part]) -> Result<(), EngineError> {
        let decls: Vec<&'static NodeDecl> =
            parts.iter().flat_map(|p| p.nodes.iter().copied()).collect();
        self.arc_decls = parts.iter().flat_map(|p| p.arcs.iter().copied()).collect();
        for d in &decls {
            if self.by_name.contains_key(d.name) {
                return Err(EngineError::Graph(format!("duplicate node name `{}`", d.name)));
            }
            self.enter(d.name.into(), d)?;
        }
        for d in &decls {
            self.connect(d.name, d)?;
        }
        for (i, arc) in self.arc_decls.clone().into_iter().enumerate() {
            let on = |tap: bool| {
                decls.iter().copied().filter(move |d| {
                    (d.kind == Kind::Tap) == tap && d.arcs().any(|name| name == arc.name)
                })
            };
            let with_id = |d: &'static NodeDecl| (d, self.by_name[d.name]);
            let nodes = on(false).map(with_id).collect();
            let taps: Vec<_> = on(true).map(|d| (d.name, self.by_name[d.name])).collect();
            let Some(&end) = self.by_name.get(arc.end) else {
                let text = format!("arc `{}` ends in unknown node `{}`", arc.name, arc.end);
                return Err(EngineError::Graph(text));
            };
            let config = ArcConfig::new(arc, end, nodes, taps)?;
            for (slot, (_, id)) in config.features.iter().enumerate() {
                self.nodes[id.0 as usize].arc = Some((ArcId(i as u8), slot as u16));
            }
            for (slot, (_, id)) in config.taps.iter().enumerate() {
                let entry = &mut self.nodes[id.0 as usize];
                entry.taps.push((ArcId(i as u8), slot as u16));
                entry.arc = entry.taps.first().copied();
            }
            self.arcs.push(config);
        }
        for d in &decls {
            let opened = |name: &&str| self.arc_decls.iter().any(|a| a.name == *name);
            if let Some(arc) = d.arcs().find(|name| !opened(name)) {
                let text = format!("node `{}` is on unknown arc `{arc}`", d.name);
                return Err(EngineError::Graph(text));
            }
        }
        let arcs = self.arcs.iter().map(ArcConfig::row).collect();
        self.arc_table = Arc::new(ArcTable { arcs });
        self.enter_hand_offs()
    }

    pub(super) fn enter(
        &mut self,
        name: Arc<str>,
        d: &'static NodeDecl,
    ) -> Result<NodeId, EngineError> {
        let id = match self.retired.take_old(&self.domain) {
            Some(id) => id,
            None if self.nodes.len() < MAX_NODES => NodeId(self.nodes.len() as u16),
            None => match self.retired.take_any(&self.domain) {
                Some(id) => id,
                None => return Err(no_room(&name, "nodes", MAX_NODES)),
            },
        };
        let place = usize::from(id.0);
        let was = self.nodes.get(place).map(|old| (old.error_base, old.errors.len()));
        let error_base = match was {
            Some((base, len)) if len == d.errors.len() => Ok(base),
            _ => self.error_range(&name, d.errors.len()),
        };
        let error_base = match error_base {
            Ok(base) => base,
            Err(e) => {
                if was.is_some() {
                    self.retired.put_back(&self.domain, id);
                }
                return Err(e);
            }
        };
        // The number of counters tells: a node without counters may have the same first one.
        if let Some((base, len)) = was.filter(|(_, len)| *len != d.errors.len()) {
            self.retired.ranges.entry(len).or_default().push(base);
            // Counts of the last owner are not shown as those of the node that has its id.
            self.begin_error_counts(base..base + len as u32);
        }
        for (at, error) in (error_base as usize..).zip(d.errors) {
            match self.errors.get_mut(at) {
                Some(old) => *old = (id, error),
                None => self.errors.push((id, error)),
            }
        }
        let new = NodeEntry {
            name: name.clone(),
            kind: d.kind,
            nexts: Vec::new(),
            drop: NodeId(0),
            error_base,
            errors: d.errors,
            arc: None,
            taps: Vec::new(),
            live: true,
        };
        match self.nodes.get_mut(place) {
            Some(old) => {
                let old = std::mem::replace(old, new);
                if self.by_name.get(&old.name) == Some(&id) {
                    self.by_name.remove(&old.name);
                }
                self.begin_counts(id);
            }
            None => self.nodes.push(new),
        }
        self.by_name.insert(name, id);
        self.changes += 1;
        Ok(id)
    }

    /// Finds room for the counters of a node: their first number.
    fn error_range(&mut self, name: &str, len: usize) -> Result<u32, EngineError> {
        if let Some(base) = self.retired.ranges.get_mut(&len).and_then(Vec::pop) {
            return Ok(base);
        }
        let base = self.errors.len();
        if base + len > MAX_ERRORS {
            return Err(no_room(name, "counters of nodes", MAX_ERRORS));
        }
        Ok(base as u32)
    }

    /// Begins the counters of a node at zero: the node that had its id before has counted, too.
    fn begin_counts(&mut self, id: NodeId) {
        let e = &self.nodes[usize::from(id.0)];
        self.begin_error_counts(e.error_base..e.error_base + e.errors.len() as u32);
        for w in 0..self.workers.len() {
            let counts = self.node_counts_raw(w, id);
            set_baseline(&mut self.baseline.nodes, w, usize::from(id.0), counts, [0; 4]);
        }
    }

    /// The same of drop reasons and other counters.
    fn begin_error_counts(&mut self, errors: Range<u32>) {
        for w in 0..self.workers.len() {
            for error in errors.clone() {
                let count = self.worker_stats(w).error(error).get();
                set_baseline(&mut self.baseline.errors, w, error as usize, count, 0);
            }
        }
    }

    fn connect(&mut self, name: &str, d: &'static NodeDecl) -> Result<(), EngineError> {
        let find = |next: &str| {
            self.by_name.get(next).copied().ok_or_else(|| {
                EngineError::Graph(format!("node `{name}` has unknown next node `{next}`"))
            })
        };
        let nexts = d.next.iter().map(|n| find(n)).collect::<Result<Vec<_>, _>>()?;
        let drop = find(d.drop)?;
        let id = self.by_name[name];
        let entry = &mut self.nodes[id.0 as usize];
        (entry.nexts, entry.drop) = (nexts, drop);
        Ok(())
    }

    pub(super) fn info(&self, id: NodeId) -> NodeInfo {
        let e = &self.nodes[id.0 as usize];
        NodeInfo {
            name: e.name.clone(),
            nexts: e.nexts.clone(),
            drop: e.drop,
            error_base: e.error_base,
            arc: e.arc,
            taps: e.taps.clone(),
        }
    }

    /// Place of a node's kind in the order of dispatch.
    fn class(&self, id: NodeId) -> u8 {
        match self.nodes[id.0 as usize].kind {
            Kind::Input | Kind::Timer | Kind::Tap => 0,
            Kind::Internal => 1,
            Kind::Tx => 2,
            Kind::Drop => 3,
        }
    }

    /// Computes the order of dispatch: along the graph, so that a node runs after those that feed
    /// it; devices' nodes after all protocols, drops last.
    pub(super) fn order(&mut self) -> Vec<NodeId> {
        fn visit(c: &Control, id: NodeId, seen: &mut Vec<bool>, out: &mut Vec<NodeId>) {
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                return;
            }
            for next in c.successors(id) {
                visit(c, next, seen, out);
            }
            out.push(id);
        }
        let (mut seen, mut out) = (vec![false; self.nodes.len()], Vec::new());
        let mut roots: Vec<NodeId> = (0..self.nodes.len() as u16).map(NodeId).collect();
        roots.sort_by_key(|id| self.class(*id));
        // Depth first puts a node after all that it feeds: reversed, before them.
        for id in roots.into_iter().rev() {
            visit(self, id, &mut seen, &mut out);
        }
        out.reverse();
        out.sort_by_key(|id| self.class(*id));
        self.order.clone_from(&out);
        out
    }

    /// Returns the order with a run-time node, which no other node names: behind all that may find
    /// it at run time, and before what it feeds. The others stay where they are, so that one more
    /// of many costs little.
    fn order_with(&mut self, id: NodeId) -> Vec<NodeId> {
        self.order.retain(|other| *other != id);
        if self.order.len() + 1 != self.nodes.len() {
            return self.order();
        }
        let mut is_fed = vec![false; self.nodes.len()];
        self.successors(id).into_iter().for_each(|fed| is_fed[usize::from(fed.0)] = true);
        let class = self.class(id);
        let is_behind = |other: &NodeId| match self.class(*other) {
            same if same == class => is_fed[usize::from(other.0)],
            of_other => of_other > class,
        };
        let at = self.order.iter().position(is_behind).unwrap_or(self.order.len());
        self.order.insert(at, id);
        self.order.clone()
    }

    /// Returns the nodes that `id` may pass packets to, arcs included.
    fn successors(&self, id: NodeId) -> Vec<NodeId> {
        let e = &self.nodes[id.0 as usize];
        let mut all = e.nexts.clone();
        all.push(e.drop);
        for arc in &self.arcs {
            let end = self.by_name[arc.decl.end];
            let starts = e.nexts.contains(&end)
                || (e.kind == Kind::Input && arc.decl.name == "device-input");
            let from = match e.arc {
                Some((a, slot)) if std::ptr::eq(&self.arcs[a.0 as usize], arc) => slot as usize + 1,
                _ if starts => 0,
                _ => continue,
            };
            if e.kind != Kind::Tap {
                all.extend(arc.features.iter().skip(from).map(|(_, id)| *id));
                all.push(end);
            }
        }
        all.retain(|n| *n != id);
        all
    }

    /// Adds a node at run time (an interface's output), or revives the one of that name, with its
    /// counters. `build` makes the instance for each worker.
    ///
    /// # Errors
    /// [`EngineError::Graph`] if a node has that name, there is no room, or a next node does not
    /// exist.
    pub fn add_node(
        &mut self,
        name: &str,
        decl: &'static NodeDecl,
        mut build: impl FnMut(usize) -> Built,
    ) -> Result<NodeId, EngineError> {
        let name: Arc<str> = name.into();
        let old = self.by_name.get(&name).copied();
        let id = match old.map(|id| (id, &self.nodes[usize::from(id.0)])) {
            Some((_, entry)) if entry.live => {
                return Err(EngineError::Graph(format!("a node has the name `{name}`")));
            }
            Some((id, entry)) if std::ptr::eq(entry.errors, decl.errors) => {
                self.retired.revive(id);
                id
            }
            _ => self.enter(name.clone(), decl)?,
        };
        if let Err(e) = self.connect(&name, decl) {
            self.nodes[id.0 as usize].live = false;
            self.retired.put_back(&self.domain, id);
            return Err(e);
        }
        self.nodes[id.0 as usize].live = true;
        let (info, order) = (self.info(id), self.order_with(id));
        for w in 0..self.workers.len() {
            let m = ToWorker::Install { id, info: info.clone(), built: build(w) };
            self.send(w, m);
            self.send(w, ToWorker::Order(order.clone()));
        }
        Ok(id)
    }

    /// Retires a run-time node: packets that still reach it are dropped and counted. Its id and its
    /// counters go to other nodes later.
    pub fn remove_node(&mut self, id: NodeId) {
        if !std::mem::replace(&mut self.nodes[id.0 as usize].live, false) {
            return;
        }
        let info = self.info(id);
        let to = self.by_name["error-drop"];
        let error =
            self.nodes[to.0 as usize].error_base + u32::from(crate::nodes::error_drop::GONE.0);
        for w in 0..self.workers.len() {
            let built = Built::Node(Box::new(crate::deleted_node::DeletedNode { to, error }));
            self.send(w, ToWorker::Install { id, info: info.clone(), built });
        }
        self.retired.put_back(&self.domain, id);
    }

    /// Returns the possible successors of a node, for `show vlib graph`.
    pub fn node_successors(&self, id: NodeId) -> Vec<NodeId> {
        let mut all = self.successors(id);
        all.sort();
        all.dedup();
        all
    }
}

/// Ids and counters of nodes that have ended, for new ones.
#[derive(Default)]
pub(super) struct Retired {
    /// The one that ended first is at the front.
    nodes: VecDeque<(Tag, NodeId)>,
    /// First numbers of counters that no node has, by how many there are.
    ranges: HashMap<usize, Vec<u32>>,
}

/// Number of nodes that have ended and keep their ids: a trace or a sample on its way that names
/// one of them finds it by its name.
const KEPT: usize = 64;

impl Retired {
    fn put_back(&mut self, domain: &Domain, id: NodeId) {
        self.nodes.push_back((domain.tag(), id));
    }

    /// The id of the node that ended first, if more than [`KEPT`] have ended, and no worker can
    /// reach it.
    fn take_old(&mut self, domain: &Domain) -> Option<NodeId> {
        if self.nodes.len() > KEPT { self.take_any(domain) } else { None }
    }

    /// The same, however few have ended.
    fn take_any(&mut self, domain: &Domain) -> Option<NodeId> {
        let (tag, id) = *self.nodes.front()?;
        if !domain.passed(tag) {
            return None;
        }
        self.nodes.pop_front();
        Some(id)
    }

    /// A node comes back by its name.
    fn revive(&mut self, id: NodeId) {
        self.nodes.retain(|(_, other)| *other != id);
    }
}

fn no_room(name: &str, what: &str, limit: usize) -> EngineError {
    EngineError::Graph(format!("too many {what}: no room for `{name}`, the limit is {limit}"))
}

/// Sets what is subtracted from a worker's counter.
fn set_baseline<T: Copy>(all: &mut Vec<Vec<T>>, worker: usize, at: usize, value: T, zero: T) {
    all.resize_with(all.len().max(worker + 1), Vec::new);
    let row = &mut all[worker];
    row.resize(row.len().max(at + 1), zero);
    row[at] = value;
}
