//! Label tables on the main thread: what users have bound, and what it resolves to.

mod found;

pub use found::{drop_needed_table, need_table, set_found_label};

use crate::error::MplsError;
use crate::label_table::{Action, Behind, Key, Leaves, Tables, To};
use crate::resolve::resolve;
use crate::tunnels::Ends;
use crate::via::{Bound, Via, is_normal, matches};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_device::{InterfaceEvent, SwIfIndex, interface};
use thalweg_engine::Came;
use thalweg_feat_ip::table::{Followed, take_touched, unfollow};
use thalweg_fib::rib::{Path, PathKind, Source, WatchedRoutes};
use thalweg_fib::{Dpo, DpoTable, Forwarding, LabelStep, RouteBook, Routes, TableId, Version};
use thalweg_graph::Control;
use thalweg_tables::Address;
use thalweg_tables::qsbr::Guard;
use thalweg_tables::snapshot::{self, Snapshot};
use thalweg_wire::mpls::{Entry, Label, label};

/// Maximum number of label tables: each takes 16 MiB of address space.
pub const MAX_TABLES: usize = 256;
/// Time for which labels are released before other work gets its turn.
const SLICE: Duration = Duration::from_millis(1);
/// Labels released between two looks at the clock.
const AT_ONCE: usize = 64;

/// A label table was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelTableDeleted(pub TableId);

/// An interface takes labelled packets, or does no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnabledChanged(pub SwIfIndex);

/// A bound label.
#[derive(Debug)]
struct Route {
    /// None for those that every table has.
    vias: Vec<Via>,
    /// The prefix whose route it follows; the paths are that route's then.
    bound: Option<Bound>,
    action: Action,
    /// Paths that lead to the action's object, and the family whose routes they follow.
    held: Option<(Version, Followed)>,
    /// Origin of the paths.
    source: Source,
    /// Paths of the kernel, in whose place a user has written these.
    under: Option<Under>,
}

/// Paths of a label that another source has taken the place of.
#[derive(Debug)]
struct Under {
    source: Source,
    vias: Vec<Via>,
}

/// A label, for display.
#[derive(Clone, Debug)]
pub struct LabelView {
    /// The label.
    pub key: Key,
    /// Its paths; none if every table has the label.
    pub vias: Vec<Via>,
    /// The prefix whose route it follows.
    pub bound: Option<Bound>,
    /// The action on its packets.
    pub action: Action,
    /// Origin of its paths.
    pub source: Source,
    /// Origin of other paths, which it does not follow.
    pub under: Option<Source>,
}

struct Table {
    leaves: Arc<Leaves>,
    name: String,
    routes: BTreeMap<Key, Route>,
    /// A user has added it; otherwise labels of the kernel need it.
    is_written: bool,
}

/// MPLS on the main thread.
pub struct Mpls {
    tables: BTreeMap<TableId, Table>,
    /// Labels of deleted tables, which are released in slices.
    leaving: Vec<(TableId, BTreeMap<Key, Route>)>,
    /// Interfaces that take MPLS.
    enabled: BTreeSet<SwIfIndex>,
    /// Labels by the interfaces of their paths.
    by_interface: BTreeSet<(SwIfIndex, TableId, Key)>,
    /// Labels by the prefixes that they are bound to.
    bound: BTreeMap<Bound, (TableId, Label)>,
    /// Prefixes whose routes have changed, and whose labels are to follow, in slices.
    touched: BTreeSet<Bound>,
    writer: snapshot::Writer<Tables>,
}

pub(crate) fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(Tables::default());
    let snapshot: Arc<Snapshot<Tables>> = snapshot;
    c.share(Arc::clone(&snapshot));
    let (tables, dpos) = (snapshot, c.shared());
    let ends = Arc::new(Ends::default());
    c.share(Arc::clone(&ends));
    c.shared::<RouteBook>().add(Arc::new(Steps { tables, dpos, ends }));
    c.insert(Mpls {
        tables: BTreeMap::new(),
        leaving: Vec::new(),
        enabled: BTreeSet::new(),
        by_interface: BTreeSet::new(),
        bound: BTreeMap::new(),
        touched: BTreeSet::new(),
        writer,
    });
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::Created(i) => set_feature(c, i, true),
        InterfaceEvent::Deleted(i) => {
            c.state::<Mpls>().borrow_mut().enabled.remove(&i);
            while leave_interface(c, i) {}
        }
        _ => {}
    });
    interface::before_delete(c, leave_interface);
    c.subscribe(|c, event: &WatchedRoutes| {
        match Version::ALL.into_iter().find(|version| version.link() == event.link) {
            Some(Version::V4) => routes_changed::<u32>(c, event.table),
            Some(Version::V6) => routes_changed::<u128>(c, event.table),
            None => {}
        }
    });
}

/// Label tables and tunnels, for descriptions of packets.
struct Steps {
    tables: Arc<Snapshot<Tables>>,
    dpos: Arc<DpoTable>,
    ends: Arc<Ends>,
}

impl Routes for Steps {
    fn prefix_len(&self, _: &Guard<'_>, _: SwIfIndex, _: IpAddr) -> Option<u8> {
        None
    }

    fn label(&self, guard: &Guard<'_>, table: u32, entry: u32) -> Option<LabelStep> {
        let leaves = self.tables.load(guard).get(TableId(table))?;
        match leaves.get(Entry(entry)) {
            Action::Miss | Action::Punt | Action::Drop => None,
            Action::Swap(label, _) => Some(LabelStep::Swapped(label.get())),
            Action::Member(..) => Some(LabelStep::ByMember),
            Action::LookUpMpls(next) => Some(LabelStep::LookedUp(next.get())),
            Action::LookUpMplsHere => Some(LabelStep::LookedUp(table)),
            Action::Ip(..) | Action::AnyIp(..) | Action::Pop(_) | Action::ReceiveL2(..) => {
                Some(LabelStep::Popped)
            }
        }
    }

    fn tunnel(&self, entry: Dpo) -> Option<SwIfIndex> {
        self.ends.tunnel(&self.dpos, entry)
    }
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
    let here = |version| Action::Ip(Behind::of(version), To::Here);
    [
        of(label::IPV4_EXPLICIT_NULL, false, Action::LookUpMplsHere),
        of(label::IPV4_EXPLICIT_NULL, true, here(Version::V4)),
        of(label::ROUTER_ALERT, false, Action::Punt),
        of(label::ROUTER_ALERT, true, Action::Punt),
        of(label::IPV6_EXPLICIT_NULL, false, Action::LookUpMplsHere),
        of(label::IPV6_EXPLICIT_NULL, true, here(Version::V6)),
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

    /// Returns whether a user has added a table: others are there for labels of the kernel.
    #[must_use]
    pub fn is_written(&self, id: TableId) -> bool {
        self.tables.get(&id).is_some_and(|table| table.is_written)
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
        self.enabled.iter().copied()
    }

    /// Returns whether an interface takes MPLS.
    #[must_use]
    pub fn is_enabled(&self, sw_if: SwIfIndex) -> bool {
        self.enabled.contains(&sw_if)
    }

    /// Labels of a table in order, from a label on.
    pub fn labels(&self, id: TableId, from: Label) -> impl Iterator<Item = LabelView> + '_ {
        let first = Key { label: from, eos: false };
        let of = self.tables.get(&id).into_iter();
        of.flat_map(move |table| table.routes.range(first..)).map(|(key, route)| LabelView {
            key: *key,
            vias: route.vias.clone(),
            bound: route.bound,
            action: route.action,
            source: route.source,
            under: route.under.as_ref().map(|under| under.source),
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
/// If there are too many, or the name is invalid.
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
        table.is_written = true;
        return Ok(());
    }
    mpls.new_table(c, id, name.unwrap_or_default(), true)?;
    drop(mpls);
    c.publish(Came);
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
    let Some(gone) = mpls.tables.remove(&id) else { return Ok(()) };
    let bound = mpls.bound.iter().filter(|(_, (table, _))| *table == id);
    let bound: Vec<Bound> = bound.map(|(bound, _)| *bound).collect();
    for bound in bound {
        mpls.bound.remove(&bound);
        // The route may have gone with its table.
        let _ = bound.watch(c, false);
    }
    mpls.publish(c);
    let idle = mpls.leaving.is_empty();
    mpls.leaving.push((id, gone.routes));
    drop(mpls);
    if id == TableId(0) {
        c.state::<Forwarding>().borrow_mut().all_labels_changed(c);
    }
    // Workers may still read it.
    let leaves = gone.leaves;
    c.domain().retire(move || drop(leaves));
    if idle {
        release_some(c);
    }
    c.publish(LabelTableDeleted(id));
    Ok(())
}

/// Releases labels of deleted tables for about a millisecond, and goes on later.
fn release_some(c: &mut Control) {
    let (begin, mpls) = (Instant::now(), c.state::<Mpls>());
    while begin.elapsed() < SLICE {
        let mut mpls = mpls.borrow_mut();
        for _ in 0..AT_ONCE {
            let Some((id, routes)) = mpls.leaving.last_mut() else { return };
            let id = *id;
            match routes.pop_first() {
                Some((key, route)) => mpls.release(c, id, key, Some(route)),
                None => _ = mpls.leaving.pop(),
            }
        }
    }
    c.after(Duration::ZERO, release_some);
}

/// Makes an interface take MPLS, or no longer. Enabling it twice is enabling it: a document, which
/// says that it is enabled and not how often, could not disable it otherwise.
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
        if on { mpls.enabled.insert(sw_if) } else { mpls.enabled.remove(&sw_if) }
    };
    if change {
        set_feature(c, sw_if, !on);
        c.publish(EnabledChanged(sw_if));
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
    mpls.check_unbound(id, key)?;
    let before = mpls.table_mut(id)?.routes.get(&key).filter(|r| r.is_written());
    let before = before.map(|r| r.vias.clone()).unwrap_or_default();
    let mut all = vias;
    if !replace && all.iter().all(is_normal) {
        let keep = before.into_iter().filter(|o| is_normal(o) && !all.iter().any(|v| v.is_same(o)));
        all.extend(keep.collect::<Vec<_>>());
    }
    mpls.put(c, id, key, all, Owner::USER)
}

/// Unbinds a label from paths, or altogether if none are given.
///
/// # Errors
/// If there is no such table, label or path.
pub fn del_label(c: &Control, id: TableId, key: Key, vias: &[Via]) -> Result<(), MplsError> {
    let mpls = c.state::<Mpls>();
    let mut mpls = mpls.borrow_mut();
    mpls.check_unbound(id, key)?;
    let table = mpls.table_mut(id)?;
    let route = table.routes.get(&key).filter(|r| r.is_written() && !r.vias.is_empty());
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
    mpls.put(c, id, key, left, Owner::USER)
}

/// Takes an interface that goes out of the paths of its labels for about a millisecond; returns
/// whether some are left.
fn leave_interface(c: &mut Control, sw_if: SwIfIndex) -> bool {
    let (begin, mpls) = (Instant::now(), c.state::<Mpls>());
    let mut mpls = mpls.borrow_mut();
    let first = (sw_if, TableId(0), Key { label: Label(0), eos: false });
    loop {
        let all = mpls.by_interface.range(first..).take_while(|(i, ..)| *i == sw_if);
        let all: Vec<_> = all.take(AT_ONCE).copied().collect();
        if all.is_empty() {
            return false;
        }
        for (_, id, key) in all {
            mpls.by_interface.remove(&(sw_if, id, key));
            let Some(route) = mpls.tables.get_mut(&id).and_then(|t| t.routes.get_mut(&key)) else {
                continue;
            };
            let others = |via: &Via| via.sw_if() != Some(sw_if);
            if let Some(under) = &mut route.under {
                under.vias.retain(others);
            }
            let left: Vec<Via> = route.vias.iter().filter(|via| others(via)).copied().collect();
            if left.len() == route.vias.len() {
                continue;
            }
            let owner = Owner { bound: route.bound, source: route.source };
            let is_empty = left.is_empty() && owner.bound.is_none();
            // The remaining paths were there before: they resolve.
            if is_empty || mpls.put(c, id, key, left, owner).is_err() {
                mpls.remove(c, id, key);
            }
        }
        if begin.elapsed() >= SLICE {
            return true;
        }
    }
}

/// Binds a label to a prefix: where it is the bottom and where it is not, packets follow the
/// prefix's route, and its labels take the place of the label. A prefix has one label: another one
/// that it had is unbound.
///
/// # Errors
/// If there is no such table, or the label has paths or another prefix.
pub fn bind(c: &mut Control, id: TableId, label: Label, to: Bound) -> Result<(), MplsError> {
    let mpls = c.state::<Mpls>();
    let mut mpls = mpls.borrow_mut();
    let table = mpls.table_mut(id)?;
    for eos in [false, true] {
        let key = Key { label, eos };
        let Some(route) = table.routes.get(&key).filter(|r| r.is_written()) else { continue };
        let what = match route.bound {
            Some(bound) if bound == to => return Ok(()),
            Some(bound) => bound.prefix(),
            None if route.vias.is_empty() => "what every table has it for".into(),
            None => "paths".into(),
        };
        return Err(MplsError::Bound(key.to_string(), what));
    }
    to.watch(c, true)?;
    if let Some((id, label)) = mpls.bound.insert(to, (id, label)) {
        mpls.remove_both(c, id, label);
    }
    mpls.follow_route(c, to);
    Ok(())
}

/// Unbinds a label from a prefix.
///
/// # Errors
/// If it is not bound to it.
pub fn unbind(c: &mut Control, id: TableId, label: Label, from: Bound) -> Result<(), MplsError> {
    let mpls = c.state::<Mpls>();
    let mut mpls = mpls.borrow_mut();
    mpls.table_mut(id)?;
    if mpls.bound.get(&from) != Some(&(id, label)) {
        return Err(MplsError::NotBound(thalweg_fib::label_text(label), id, from.prefix()));
    }
    mpls.bound.remove(&from);
    mpls.remove_both(c, id, label);
    // The route may have gone with its table.
    let _ = from.watch(c, false);
    Ok(())
}

/// Makes the labels that are bound to prefixes of a table follow the routes that have changed.
fn routes_changed<A: Address>(c: &mut Control, table: TableId) {
    let mpls = c.state::<Mpls>();
    let idle = {
        let mut mpls = mpls.borrow_mut();
        let idle = mpls.touched.is_empty();
        match take_touched::<A>(c, table) {
            Some(all) => mpls.touched.extend(all.into_iter().map(|p| Bound::of(table, p))),
            None => {
                let own = |to: &&Bound| to.table() == table && to.version() == Version::of::<A>();
                let of = mpls.bound.keys().filter(own);
                let of: Vec<Bound> = of.copied().collect();
                mpls.touched.extend(of);
            }
        }
        idle
    };
    if idle {
        follow_some(c);
    }
}

/// Makes some labels follow their routes, and goes on later.
fn follow_some(c: &mut Control) {
    let (begin, mpls) = (Instant::now(), c.state::<Mpls>());
    while begin.elapsed() < SLICE {
        let mut mpls = mpls.borrow_mut();
        for _ in 0..AT_ONCE {
            let Some(bound) = mpls.touched.pop_first() else { return };
            mpls.follow_route(c, bound);
        }
    }
    c.after(Duration::ZERO, follow_some);
}

/// Notifies followers of a label of its change.
fn note_change(c: &Control, id: TableId, key: Key) {
    if (id, key.eos) == (TableId(0), false) {
        c.state::<Forwarding>().borrow_mut().label_changed(c, key.label);
    }
}

impl Route {
    /// A label that every table has.
    fn reserved(action: Action) -> Route {
        let (vias, source) = (Vec::new(), Source::Default);
        Route { vias, bound: None, action, held: None, source, under: None }
    }

    /// Returns whether a user has written it, or every table has it.
    fn is_written(&self) -> bool {
        !is_of_kernel(self.source)
    }

    /// Interfaces of its paths, and of those that it has taken the place of.
    fn sw_ifs(&self) -> impl Iterator<Item = SwIfIndex> {
        let under = self.under.iter().flat_map(|under| &under.vias);
        self.vias.iter().chain(under).filter_map(Via::sw_if)
    }
}

fn is_of_kernel(source: Source) -> bool {
    matches!(source, Source::KernelStatic | Source::KernelDynamic)
}

/// Origin of a label's paths.
#[derive(Clone, Copy)]
struct Owner {
    bound: Option<Bound>,
    source: Source,
}

impl Owner {
    /// Paths that a user has written.
    const USER: Owner = Owner { bound: None, source: Source::Static };
}

impl Mpls {
    /// Makes a table.
    fn new_table(
        &mut self,
        c: &Control,
        id: TableId,
        name: &str,
        is_written: bool,
    ) -> Result<(), MplsError> {
        if self.tables.len() >= MAX_TABLES {
            return Err(MplsError::TooManyTables);
        }
        let leaves = Arc::new(Leaves::default());
        let mut routes = BTreeMap::new();
        for (key, action) in reserved() {
            leaves.set(key, action);
            routes.insert(key, Route::reserved(action));
        }
        let name = name.to_owned();
        self.tables.insert(id, Table { leaves, name, routes, is_written });
        self.publish(c);
        Ok(())
    }

    /// Labels that are bound to prefixes, by prefix.
    pub fn bound(&self) -> impl Iterator<Item = (Bound, TableId, Label)> + '_ {
        self.bound.iter().map(|(to, (id, label))| (*to, *id, *label))
    }

    /// Refuses paths of a label that follows a prefix's route.
    fn check_unbound(&mut self, id: TableId, key: Key) -> Result<(), MplsError> {
        match self.table_mut(id)?.routes.get(&key).and_then(|route| route.bound) {
            Some(bound) => Err(MplsError::Bound(key.to_string(), bound.prefix())),
            None => Ok(()),
        }
    }

    /// Sets what becomes of the label of a prefix by the route that the prefix has now. If the
    /// table has gone, the label goes, too.
    fn follow_route(&mut self, c: &Control, to: Bound) {
        let Some(&(id, label)) = self.bound.get(&to) else { return };
        let Some(paths) = to.paths(c) else {
            self.bound.remove(&to);
            return self.remove_both(c, id, label);
        };
        // Connected, answered and received prefixes: the host is looked up.
        let leads_on = |p: &Path| {
            p.kind == PathKind::Normal && (p.next_hop.is_some() || p.via_label.is_some())
        };
        // Labels are followed in table 0, and the route's own next hops where it is.
        let own = |p: &Path| match p.sw_if {
            None if p.via_label.is_none() => {
                Via::Path(Path { table: p.table.or(Some(to.table())), ..*p })
            }
            _ => Via::Path(*p),
        };
        let vias: Vec<Via> = match paths.iter().all(leads_on) {
            true => paths.iter().map(own).collect(),
            false => Vec::new(),
        };
        let look_up = Path::special(PathKind::Lookup(to.table()));
        for eos in [false, true] {
            let key = Key { label, eos };
            let looked_up = match eos && !paths.is_empty() {
                true if to.version() == Version::V6 => Via::Ip6(look_up),
                true => Via::Path(look_up),
                false => Via::Path(Path::special(PathKind::Drop)),
            };
            let vias = if vias.is_empty() { vec![looked_up] } else { vias.clone() };
            let owner = Owner { bound: Some(to), ..Owner::USER };
            if let Err(e) = self.put(c, id, key, vias, owner) {
                tracing::warn!("label {key} of {}: {e}", to.prefix());
                let dropped = vec![Via::Path(Path::special(PathKind::Drop))];
                // A drop needs no room, and cannot fail.
                let _ = self.put(c, id, key, dropped, owner);
            }
        }
    }

    /// Removes a label where it is the bottom, and where it is not.
    fn remove_both(&mut self, c: &Control, id: TableId, label: Label) {
        for eos in [false, true] {
            self.remove(c, id, Key { label, eos });
        }
    }

    /// Sets the paths of a label.
    fn put(
        &mut self,
        c: &Control,
        id: TableId,
        key: Key,
        mut vias: Vec<Via>,
        Owner { bound, source }: Owner,
    ) -> Result<(), MplsError> {
        vias.sort_unstable();
        for via in &vias {
            if let Via::Mpls(table) = via {
                self.table_mut(*table)?;
            }
        }
        if (id, key.eos) == (TableId(0), false) && self.leads_to(&vias, key.label) {
            return Err(MplsError::Loop(key.label));
        }
        let (action, held) = resolve(c, key, &vias, bound)?;
        let table = self.tables.get_mut(&id).ok_or(MplsError::NoTable(id))?;
        table.leaves.set(key, action);
        let mut old = table.routes.remove(&key);
        let under = match &mut old {
            _ if is_of_kernel(source) => None,
            Some(old) if old.is_written() => old.under.take(),
            Some(old) => Some(Under { source: old.source, vias: old.vias.clone() }),
            None => None,
        };
        let route = Route { vias, bound, action, held, source, under };
        let used: Vec<SwIfIndex> = route.sw_ifs().collect();
        table.routes.insert(key, route);
        self.release(c, id, key, old);
        self.by_interface.extend(used.into_iter().map(|i| (i, id, key)));
        note_change(c, id, key);
        Ok(())
    }

    /// Returns whether paths lead to a label of table 0 by those that they follow.
    fn leads_to(&self, vias: &[Via], label: Label) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vias.to_vec());
        while let Some(via) = next.pop() {
            let Some(followed) = via.via_label() else { continue };
            if followed == label {
                return true;
            }
            if seen.insert(followed) {
                next.extend(self.followed(followed));
            }
        }
        false
    }

    /// The paths of a label of table 0 where it is no bottom, which others follow.
    pub(crate) fn followed(&self, label: Label) -> &[Via] {
        let route =
            self.tables.get(&TableId(0)).and_then(|t| t.routes.get(&Key { label, eos: false }));
        route.map_or(&[], |route| &route.vias)
    }

    /// Removes the paths of a label, which follows those of the kernel again, if there are such.
    /// One that every table has is as it was at first.
    fn remove(&mut self, c: &Control, id: TableId, key: Key) {
        let route = self.tables.get_mut(&id).and_then(|table| table.routes.get_mut(&key));
        let under = route.and_then(|route| route.under.take());
        if let Some(Under { source, vias }) = under.filter(|under| !under.vias.is_empty()) {
            let owner = Owner { bound: None, source };
            match self.put(c, id, key, vias, owner) {
                Ok(()) => return,
                Err(e) => tracing::warn!("label {key} of the kernel: {e}"),
            }
        }
        let Some(table) = self.tables.get_mut(&id) else { return };
        let first = reserved().into_iter().find(|(k, _)| *k == key).map(|(_, action)| action);
        table.leaves.set(key, first.unwrap_or(Action::Miss));
        let old = match first {
            Some(action) => table.routes.insert(key, Route::reserved(action)),
            None => table.routes.remove(&key),
        };
        self.release(c, id, key, old);
        note_change(c, id, key);
    }

    /// Releases what a label had, in this table or an earlier one of this number.
    fn release(&mut self, c: &Control, id: TableId, key: Key, old: Option<Route>) {
        let Some(old) = old else { return };
        for i in old.sw_ifs() {
            let now = self.tables.get(&id).and_then(|table| table.routes.get(&key));
            if !now.is_some_and(|route| route.sw_ifs().any(|now| now == i)) {
                self.by_interface.remove(&(i, id, key));
            }
        }
        match old.held {
            Some((Version::V4, followed)) => unfollow::<u32>(c, followed),
            Some((Version::V6, followed)) => unfollow::<u128>(c, followed),
            None => {}
        }
    }
}
