//! Label tables on the main thread: what users have bound, and what it resolves to.

use crate::error::MplsError;
use crate::label_table::{Action, Key, Leaves, Tables};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thalweg_device::{InterfaceEvent, SwIfIndex, interface};
use thalweg_fib::rib::{Labels, Path, PathKind};
use thalweg_fib::{
    AdjacencyKey, Dpo, FibError, Forwarding, Imposed, LinkType, Member, Peer, TableId,
};
use thalweg_graph::Control;
use thalweg_tables::snapshot::{self, Snapshot};
use thalweg_wire::mpls::{Label, label};

/// Maximum number of label tables: each takes 16 MiB of address space.
pub const MAX_TABLES: usize = 256;

/// A path of a label.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Via {
    /// To a next hop, or to where IP routes lead, too.
    Path(Path),
    /// The next label is looked up in a table.
    Mpls(TableId),
}

impl Via {
    fn sw_if(&self) -> Option<SwIfIndex> {
        match self {
            Via::Path(path) => path.sw_if,
            Via::Mpls(_) => None,
        }
    }

    fn is_same(&self, other: &Via) -> bool {
        match (self, other) {
            (Via::Path(a), Via::Path(b)) => a.is_same(b),
            _ => self == other,
        }
    }
}

/// A bound label.
#[derive(Debug)]
struct Route {
    /// None for those that every table has.
    vias: Vec<Via>,
    action: Action,
    /// The object in the action, with a reference.
    held: Option<Dpo>,
}

/// A label, for display.
#[derive(Clone, Debug)]
pub struct LabelView {
    /// The label.
    pub key: Key,
    /// Its paths; none if every table has it.
    pub vias: Vec<Via>,
    /// What becomes of it.
    pub action: Action,
}

struct Table {
    leaves: Arc<Leaves>,
    name: String,
    routes: BTreeMap<Key, Route>,
}

/// MPLS on the main thread.
pub struct Mpls {
    tables: BTreeMap<TableId, Table>,
    /// Interfaces that take MPLS, each with how often it was enabled.
    enabled: BTreeMap<SwIfIndex, u32>,
    /// Labels by the interfaces of their paths.
    by_interface: BTreeSet<(SwIfIndex, TableId, Key)>,
    writer: snapshot::Writer<Tables>,
}

pub(crate) fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(Tables::default());
    let snapshot: Arc<Snapshot<Tables>> = snapshot;
    c.share(snapshot);
    let (tables, enabled, by_interface) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    c.insert(Mpls { tables, enabled, by_interface, writer });
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::Created(i) => set_feature(c, i, true),
        InterfaceEvent::Deleted(i) => interface_gone(c, i),
        _ => {}
    });
}

/// Makes an interface drop MPLS, or take it.
fn set_feature(c: &mut Control, sw_if: SwIfIndex, silent: bool) {
    if let Err(e) = c.enable_feature("mpls-input", "mpls-not-enabled", sw_if, silent) {
        tracing::error!("{}: {e}", c.interface_name(sw_if));
    }
}

/// Labels that every table has (RFC 3032 section 2.1).
fn reserved() -> [(Key, Action); 6] {
    let of = |label, eos, action| (Key { label, eos }, action);
    [
        of(label::IPV4_EXPLICIT_NULL, false, Action::LookUpMplsHere),
        of(label::IPV4_EXPLICIT_NULL, true, Action::LookUpIp4Here),
        of(label::ROUTER_ALERT, false, Action::Punt),
        of(label::ROUTER_ALERT, true, Action::Punt),
        of(label::IPV6_EXPLICIT_NULL, false, Action::LookUpMplsHere),
        of(label::IPV6_EXPLICIT_NULL, true, Action::Drop),
    ]
}

impl Mpls {
    /// Ids and names of all tables.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &str)> {
        self.tables.iter().map(|(id, table)| (*id, table.name.as_str()))
    }

    /// Returns whether a table exists.
    #[must_use]
    pub fn has_table(&self, id: TableId) -> bool {
        self.tables.contains_key(&id)
    }

    /// Number of labels of a table, with bottoms counted apart.
    #[must_use]
    pub fn len(&self, id: TableId) -> usize {
        self.tables.get(&id).map_or(0, |table| table.routes.len())
    }

    /// Returns whether a table has no labels.
    #[must_use]
    pub fn is_empty(&self, id: TableId) -> bool {
        self.len(id) == 0
    }

    /// Interfaces that take MPLS.
    pub fn enabled(&self) -> impl Iterator<Item = SwIfIndex> {
        self.enabled.keys().copied()
    }

    /// Returns whether an interface takes MPLS.
    #[must_use]
    pub fn is_enabled(&self, sw_if: SwIfIndex) -> bool {
        self.enabled.contains_key(&sw_if)
    }

    /// Labels of a table in order, from a label on.
    pub fn labels(&self, id: TableId, from: Label) -> impl Iterator<Item = LabelView> + '_ {
        let first = Key { label: from, eos: false };
        let of = self.tables.get(&id).into_iter();
        of.flat_map(move |table| table.routes.range(first..)).map(|(key, route)| LabelView {
            key: *key,
            vias: route.vias.clone(),
            action: route.action,
        })
    }

    fn table_mut(&mut self, id: TableId) -> Result<&mut Table, MplsError> {
        self.tables.get_mut(&id).ok_or(MplsError::NoTable(id))
    }

    fn publish(&mut self, c: &Control) {
        let all: Vec<_> = self.tables.iter().map(|(id, t)| (*id, Arc::clone(&t.leaves))).collect();
        let main = self.tables.get(&TableId(0)).map(|t| Arc::clone(&t.leaves));
        self.writer.publish(c.domain(), Tables { main, all });
    }
}

/// Adds a label table, unless it exists; an empty name takes its name away, none leaves it.
///
/// # Errors
/// If there are too many, or the name cannot be said.
pub fn add_table(c: &mut Control, id: TableId, name: Option<&str>) -> Result<(), MplsError> {
    // A command line and a document have to say it.
    let odd = |c: char| c.is_control() || c.is_whitespace() || "'\"{}|#\\".contains(c);
    if name.is_some_and(|name| name.len() > 63 || name.contains(odd)) {
        let why = "the name of a table has up to 63 bytes, without blanks, quotes, braces, `|', `#', \
                   backslashes and control characters";
        return Err(MplsError::Unsuitable(why));
    }
    let mpls = c.state::<Mpls>();
    let mut mpls = mpls.borrow_mut();
    if let Some(table) = mpls.tables.get_mut(&id) {
        if let Some(name) = name {
            name.clone_into(&mut table.name);
        }
        return Ok(());
    }
    if mpls.tables.len() >= MAX_TABLES {
        return Err(MplsError::TooManyTables);
    }
    let leaves = Arc::new(Leaves::default());
    let mut routes = BTreeMap::new();
    for (key, action) in reserved() {
        leaves.set(key, action);
        routes.insert(key, Route { vias: Vec::new(), action, held: None });
    }
    mpls.tables.insert(id, Table { leaves, name: name.unwrap_or_default().to_owned(), routes });
    mpls.publish(c);
    Ok(())
}

/// Deletes a label table with its labels.
///
/// # Errors
/// If there is none, or interfaces use it.
pub fn del_table(c: &mut Control, id: TableId) -> Result<(), MplsError> {
    let mpls = c.state::<Mpls>();
    let mut mpls = mpls.borrow_mut();
    mpls.table_mut(id)?;
    if id == TableId(0) && !mpls.enabled.is_empty() {
        return Err(MplsError::TableInUse);
    }
    let gone = mpls.tables.remove(&id);
    mpls.by_interface.retain(|(_, table, _)| *table != id);
    mpls.publish(c);
    let Some(gone) = gone else { return Ok(()) };
    let f = c.state::<Forwarding>();
    for dpo in gone.routes.values().filter_map(|route| route.held) {
        f.borrow_mut().release(c, dpo);
    }
    // Workers may still read it.
    c.domain().retire(move || drop(gone.leaves));
    Ok(())
}

/// Makes an interface take MPLS, or no longer. It is disabled once it was disabled as often as
/// enabled.
///
/// # Errors
/// If there is no such interface, or no table 0.
pub fn set_enabled(c: &mut Control, sw_if: SwIfIndex, on: bool) -> Result<(), MplsError> {
    interface::view(c, sw_if)?;
    let mpls = c.state::<Mpls>();
    let change = {
        let mut mpls = mpls.borrow_mut();
        if !mpls.has_table(TableId(0)) {
            return Err(MplsError::NoDefaultTable);
        }
        let count = mpls.enabled.entry(sw_if).or_default();
        let before = *count;
        *count = if on { before.saturating_add(1) } else { before.saturating_sub(1) };
        let now = *count;
        if now == 0 {
            mpls.enabled.remove(&sw_if);
        }
        (before == 0) != (now == 0)
    };
    if change {
        set_feature(c, sw_if, !on);
    }
    Ok(())
}

/// Binds a label to paths: to more, or to these only (`replace`).
///
/// # Errors
/// If there is no such table, or a path is refused; nothing has changed then.
pub fn add_label(
    c: &Control,
    id: TableId,
    key: Key,
    vias: Vec<Via>,
    replace: bool,
) -> Result<(), MplsError> {
    if vias.is_empty() {
        return Err(MplsError::NoPaths);
    }
    let mpls = c.state::<Mpls>();
    let mut mpls = mpls.borrow_mut();
    let before = mpls.table_mut(id)?.routes.get(&key).map(|r| r.vias.clone()).unwrap_or_default();
    let mut all = vias;
    if !replace && all.iter().all(is_normal) {
        let keep = before.into_iter().filter(|o| is_normal(o) && !all.iter().any(|v| v.is_same(o)));
        all.extend(keep.collect::<Vec<_>>());
    }
    mpls.put(c, id, key, all)
}

/// Unbinds a label from paths, or altogether if none are given.
///
/// # Errors
/// If there is no such table, label or path.
pub fn del_label(c: &Control, id: TableId, key: Key, vias: &[Via]) -> Result<(), MplsError> {
    let mpls = c.state::<Mpls>();
    let mut mpls = mpls.borrow_mut();
    let table = mpls.table_mut(id)?;
    let route = table.routes.get(&key).filter(|route| !route.vias.is_empty());
    let mut left = match route {
        Some(route) => route.vias.clone(),
        None => return Err(MplsError::NoLabel(key.to_string(), id)),
    };
    for via in vias {
        let n = left.len();
        left.retain(|o| !matches(o, via));
        if left.len() == n {
            return Err(MplsError::NoPath(key.to_string(), id));
        }
    }
    if vias.is_empty() || left.is_empty() {
        mpls.remove(c, id, key);
        return Ok(());
    }
    mpls.put(c, id, key, left)
}

/// Returns whether a path is meant by another one, which may leave its labels out.
fn matches(path: &Via, meant: &Via) -> bool {
    match (path, meant) {
        (Via::Path(a), Via::Path(b)) => {
            (a.kind, a.next_hop) == (b.kind, b.next_hop)
                && (b.sw_if.is_none() || a.sw_if == b.sw_if)
                && (b.labels == Labels::NONE || a.labels == b.labels)
        }
        _ => path == meant,
    }
}

fn is_normal(via: &Via) -> bool {
    matches!(via, Via::Path(path) if path.kind == PathKind::Normal)
}

/// Removes the paths of all labels by an interface.
fn interface_gone(c: &mut Control, sw_if: SwIfIndex) {
    let mpls = c.state::<Mpls>();
    let mut mpls = mpls.borrow_mut();
    mpls.enabled.remove(&sw_if);
    let all = (sw_if, TableId(0), Key { label: Label(0), eos: false })..;
    let all: Vec<_> =
        mpls.by_interface.range(all).take_while(|(i, ..)| *i == sw_if).copied().collect();
    for (_, id, key) in all {
        let Some(route) = mpls.tables.get(&id).and_then(|t| t.routes.get(&key)) else { continue };
        let others = |via: &&Via| via.sw_if() != Some(sw_if);
        let left: Vec<Via> = route.vias.iter().filter(others).copied().collect();
        // What is left was there before: it resolves.
        if left.is_empty() || mpls.put(c, id, key, left).is_err() {
            mpls.remove(c, id, key);
        }
    }
}

impl Mpls {
    /// Sets the paths of a label.
    fn put(
        &mut self,
        c: &Control,
        id: TableId,
        key: Key,
        mut vias: Vec<Via>,
    ) -> Result<(), MplsError> {
        vias.sort_unstable();
        for table in
            vias.iter().filter_map(|via| if let Via::Mpls(t) = via { Some(*t) } else { None })
        {
            self.table_mut(table)?;
        }
        let (action, held) = resolve(c, key, &vias)?;
        let table = self.tables.get_mut(&id).ok_or(MplsError::NoTable(id))?;
        table.leaves.set(key, action);
        let used: Vec<SwIfIndex> = vias.iter().filter_map(Via::sw_if).collect();
        let old = table.routes.insert(key, Route { vias, action, held });
        self.release(c, id, key, old);
        self.by_interface.extend(used.into_iter().map(|i| (i, id, key)));
        Ok(())
    }

    /// Removes a label; one that every table has is as it was at first.
    fn remove(&mut self, c: &Control, id: TableId, key: Key) {
        let Some(table) = self.tables.get_mut(&id) else { return };
        let first = reserved().into_iter().find(|(k, _)| *k == key).map(|(_, action)| action);
        table.leaves.set(key, first.unwrap_or(Action::Miss));
        let old = match first {
            Some(action) => {
                table.routes.insert(key, Route { vias: Vec::new(), action, held: None })
            }
            None => table.routes.remove(&key),
        };
        self.release(c, id, key, old);
    }

    fn release(&mut self, c: &Control, id: TableId, key: Key, old: Option<Route>) {
        let Some(old) = old else { return };
        for i in old.vias.iter().filter_map(Via::sw_if) {
            self.by_interface.remove(&(i, id, key));
        }
        if let Some(dpo) = old.held {
            c.state::<Forwarding>().borrow_mut().release(c, dpo);
        }
    }
}

/// Returns what becomes of a label with these paths, and the object to hold for it.
fn resolve(c: &Control, key: Key, vias: &[Via]) -> Result<(Action, Option<Dpo>), MplsError> {
    if let [via] = vias {
        return one(c, key, via);
    }
    if !vias.iter().all(is_normal) {
        return Err(MplsError::Alone);
    }
    let paths = vias.iter().filter_map(|via| if let Via::Path(p) = via { Some(p) } else { None });
    let pops = paths.clone().all(|p| p.labels.sent() == Labels::NONE);
    let f = c.state::<Forwarding>();
    let mut members = Vec::new();
    for path in paths {
        match member(c, key, path, key.eos && pops) {
            Ok(dpo) => members.push(Member {
                dpo,
                weight: u32::from(path.weight.max(1)),
                preference: path.preference,
            }),
            Err(e) => {
                members.iter().for_each(|m: &Member| f.borrow_mut().release(c, m.dpo));
                return Err(e);
            }
        }
    }
    let group = f.borrow_mut().group(c, members)?;
    let action = if key.eos && pops { Action::Ip4(group) } else { Action::Member(group) };
    Ok((action, Some(group)))
}

/// Where a path leads: an interface and who is there.
fn place(path: &Path) -> Result<(SwIfIndex, Peer), MplsError> {
    match path.sw_if {
        Some(sw_if) => Ok((sw_if, path.next_hop.map_or(Peer::PointToPoint, Peer::Neighbor))),
        None => Err(MplsError::Unsuitable(
            "a next hop of a label needs its interface: `via <next hop> <interface>'",
        )),
    }
}

/// Splits the labels of a path into those that are pushed and the one that is swapped.
fn swapped(path: &Path) -> (Labels, Option<Label>) {
    let sent = path.labels.sent();
    match sent.as_slice().split_last() {
        Some((last, outer)) => (Labels::new(outer).unwrap_or_default(), Some(*last)),
        None => (Labels::NONE, None),
    }
}

/// The object of one of several paths: an adjacency that says which label to swap.
fn member(c: &Control, key: Key, path: &Path, plain: bool) -> Result<Dpo, MplsError> {
    let (sw_if, peer) = place(path)?;
    let (labels, swap) = swapped(path);
    let link = if swap.is_none() && key.eos { LinkType::Ip4 } else { LinkType::Mpls };
    let swap = (!plain).then(|| swap.unwrap_or(label::IMPLICIT_NULL));
    let imposed = Imposed { labels, bottom: false, swap };
    let f = c.state::<Forwarding>();
    let dpo = f.borrow_mut().imposing(c, AdjacencyKey { sw_if, link, peer, imposed })?;
    Ok(dpo)
}

fn one(c: &Control, key: Key, via: &Via) -> Result<(Action, Option<Dpo>), MplsError> {
    let path = match via {
        Via::Path(path) => path,
        Via::Mpls(table) if !key.eos => return Ok((Action::LookUpMpls(*table), None)),
        Via::Mpls(_) => {
            let why =
                "no label follows the bottom of the stack: `mpls-lookup-in-table' is for `non-eos'";
            return Err(MplsError::Unsuitable(why));
        }
    };
    let ip_only = |action| match key.eos {
        true => Ok((action, None)),
        false => Err(MplsError::Unsuitable("no IP packet follows a label that is `non-eos'")),
    };
    match path.kind {
        PathKind::Normal => {}
        PathKind::Lookup(table) => {
            if c.state::<thalweg_feat_ip::Ip4>().borrow().serial(table).is_none() {
                let version = thalweg_feat_ip::Version::V4;
                return Err(thalweg_feat_ip::RouteError::NoTable(version, table.get()).into());
            }
            return ip_only(Action::LookUpIp4(table));
        }
        PathKind::InterfaceRx => {
            let sw_if = path.sw_if.ok_or(FibError::NoInterface(SwIfIndex(0)))?;
            interface::view(c, sw_if)?;
            return ip_only(Action::ReceiveIp4(sw_if.get()));
        }
        PathKind::Local => return Ok((Action::Punt, None)),
        PathKind::Drop => return Ok((Action::Drop, None)),
        PathKind::Unreachable | PathKind::Prohibit | PathKind::Group(_) => {
            return Err(MplsError::Unsuitable("such a path is for IP routes only"));
        }
    }
    let (sw_if, peer) = place(path)?;
    let (labels, swap) = swapped(path);
    let link = if swap.is_none() && key.eos { LinkType::Ip4 } else { LinkType::Mpls };
    let imposed = Imposed { labels, bottom: false, swap: None };
    let f = c.state::<Forwarding>();
    let dpo = f.borrow_mut().imposing(c, AdjacencyKey { sw_if, link, peer, imposed })?;
    let action = match swap {
        Some(label) => Action::Swap(label, dpo),
        None if key.eos => Action::Ip4(dpo),
        None => Action::Pop(dpo),
    };
    Ok((action, Some(dpo)))
}
