//! Redirects of punted packets: what the router's protocols have no use for leaves by paths, to a
//! host that may.

use crate::family::Version;
use crate::table::RouteError;
use crate::{Ip, Path, PathKind};
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;
use thalweg_device::{DeviceError, InterfaceEvent, Interfaces, SwIfIndex, interface};
use thalweg_engine::punt::{self, Redirected};
use thalweg_fib::{Dpo, Forwarding, TableId};
use thalweg_graph::Control;
use thalweg_tables::Address;
use thalweg_tables::snapshot::{self, Snapshot};

/// Packets of all interfaces that have no redirect of their own. No packet comes by this index.
pub const ALL: SwIfIndex = SwIfIndex(0);

/// Targets of a version's punted packets, as workers read them.
#[derive(Debug)]
pub struct Redirects<A: 'static> {
    by_rx: BTreeMap<SwIfIndex, Dpo>,
    version: PhantomData<fn(A)>,
}

impl<A> Redirects<A> {
    /// Returns the forwarding object for packets that an interface has received.
    #[inline]
    pub fn get(&self, rx_if: SwIfIndex) -> Option<Dpo> {
        self.by_rx.get(&rx_if).or_else(|| self.by_rx.get(&ALL)).copied()
    }
}

/// A redirect.
struct Entry {
    paths: Vec<Path>,
    list: u32,
    dpo: Dpo,
}

/// Redirects of a version on the main thread.
struct State<A: 'static> {
    entries: BTreeMap<SwIfIndex, Entry>,
    writer: snapshot::Writer<Redirects<A>>,
    /// Interfaces that have the node on their arc.
    on: BTreeSet<SwIfIndex>,
    /// Redirects as punting nodes read them.
    known: Redirected,
}

/// Reason why a redirect is refused.
#[derive(Debug, thiserror::Error)]
pub enum RedirectError {
    /// The redirect has no paths, or one that cannot be used.
    #[error("a redirect needs a path that leads on: a next hop, or an interface")]
    NoPath,
    /// No such redirect is set.
    #[error("packets of {0} are not redirected; `show {1} punt redirect' lists what is")]
    Unknown(String, &'static str),
    /// The interface does not exist.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A path is refused.
    #[error(transparent)]
    Route(#[from] RouteError),
}

/// A version's punt arc, node and owner of reasons.
fn names<A: Address>() -> (&'static str, &'static str, &'static str) {
    match Version::of::<A>() {
        Version::V4 => ("ip4-punt", "ip4-punt-redirect", "ip4"),
        Version::V6 => ("ip6-punt", "ip6-punt-redirect", "ip6"),
    }
}

pub(crate) fn init<A: Address>(c: &mut Control) {
    let empty = Redirects::<A> { by_rx: BTreeMap::new(), version: PhantomData };
    let (writer, snapshot) = snapshot::channel(empty);
    let snapshot: Arc<Snapshot<Redirects<A>>> = snapshot;
    c.share(snapshot);
    let (entries, on, known) = (BTreeMap::new(), BTreeSet::new(), Redirected::default());
    c.insert(State::<A> { entries, writer, on, known });
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::Created(i) => created::<A>(c, i),
        InterfaceEvent::Deleted(i) => gone::<A>(c, i),
        _ => {}
    });
}

/// The name of the interface whose packets are redirected.
pub fn rx_name(c: &Control, rx_if: SwIfIndex) -> String {
    if rx_if == ALL { "all".into() } else { c.interface_name(rx_if) }
}

/// Returns the redirects of a version with their paths and forwarding objects, that of
/// [`ALL`] first.
pub fn all<A: Address>(c: &Control) -> Vec<(SwIfIndex, Vec<Path>, Dpo)> {
    let state = c.state::<State<A>>();
    let state = state.borrow();
    state.entries.iter().map(|(rx_if, e)| (*rx_if, e.paths.clone(), e.dpo)).collect()
}

/// Sends punted packets that an interface, or [`ALL`], has received by these paths, instead of
/// those that it has, if any. Next hops without an interface are looked up in table 0.
///
/// # Errors
/// [`RedirectError`]; nothing has changed then.
pub fn set<A: Address>(
    c: &mut Control,
    rx_if: SwIfIndex,
    paths: Vec<Path>,
) -> Result<(), RedirectError> {
    if rx_if != ALL {
        interface::view(c, rx_if)?;
    }
    let special = |p: &Path| match p.kind {
        PathKind::Normal => p.next_hop.is_none() && p.sw_if.is_none() && p.via_label.is_none(),
        PathKind::Lookup(_) => false,
        _ => true,
    };
    let alone = |p: &Path| p.kind != PathKind::Normal;
    if paths.is_empty() || paths.iter().any(special) || paths.len() > 1 && paths.iter().any(alone) {
        return Err(RedirectError::NoPath);
    }
    let entry = resolve::<A>(c, paths)?;
    replace::<A>(c, rx_if, Some(entry), None);
    Ok(())
}

/// Removes the redirect of packets that an interface, or [`ALL`], has received.
///
/// # Errors
/// [`RedirectError::Unknown`].
pub fn remove<A: Address>(c: &mut Control, rx_if: SwIfIndex) -> Result<(), RedirectError> {
    if !c.state::<State<A>>().borrow().entries.contains_key(&rx_if) {
        let name = match rx_if {
            ALL => "all interfaces".to_owned(),
            one => format!("`{}'", c.interface_name(one)),
        };
        return Err(RedirectError::Unknown(name, Version::of::<A>().word()));
    }
    replace::<A>(c, rx_if, None, None);
    Ok(())
}

/// Makes paths into a forwarding object.
fn resolve<A: Address>(c: &mut Control, paths: Vec<Path>) -> Result<Entry, RouteError> {
    let ip = c.state::<Ip<A>>();
    let mut ip = ip.borrow_mut();
    let mut paths: Vec<Path> = paths.into_iter().map(|p| p.in_table::<A>(TableId(0))).collect();
    // Their order means nothing.
    paths.sort_unstable();
    // Next hops of other tables are followed there.
    let (tracked, mut done) = ip.track_others(c, &paths);
    for path in &paths {
        if let PathKind::Lookup(table) = path.kind {
            done = done.and_then(|()| ip.table_mut(table).map(|_| ()));
        }
    }
    let found = done.and_then(|()| Ok(ip.table_mut(TableId(0))?.intern(c, paths.clone())?));
    let f = c.state::<Forwarding>();
    tracked.into_iter().for_each(|dpo| f.borrow_mut().release(c, dpo));
    found.map(|(list, dpo)| Entry { paths, list, dpo })
}

/// Puts an entry in the place of another. For `gone`, see [`follow`].
fn replace<A: Address>(
    c: &mut Control,
    rx_if: SwIfIndex,
    entry: Option<Entry>,
    gone: Option<SwIfIndex>,
) {
    let state = c.state::<State<A>>();
    let old = match entry {
        Some(entry) => state.borrow_mut().entries.insert(rx_if, entry),
        None => state.borrow_mut().entries.remove(&rx_if),
    };
    {
        let mut state = state.borrow_mut();
        let by_rx = state.entries.iter().map(|(rx_if, e)| (*rx_if, e.dpo)).collect();
        state.writer.publish(c.domain(), Redirects { by_rx, version: PhantomData });
    }
    if let Some(Entry { list, .. }) = old
        && let Ok(table) = c.state::<Ip<A>>().borrow_mut().table_mut(TableId(0))
    {
        table.release(c, list);
    }
    follow::<A>(c, gone);
}

/// Punts on the interfaces whose packets are redirected; the features of one that is `gone` have
/// gone with it.
fn follow<A: Address>(c: &mut Control, gone: Option<SwIfIndex>) {
    let (arc, node, from) = names::<A>();
    let state = c.state::<State<A>>();
    let (before, after) = {
        let mut state = state.borrow_mut();
        gone.map(|gone| state.on.remove(&gone));
        let after: BTreeSet<SwIfIndex> = match state.entries.contains_key(&ALL) {
            true => {
                let all = c.state::<Interfaces>();
                let all = all.borrow();
                all.iter().map(|v| v.sw_if).filter(|i| *i != ALL && gone != Some(*i)).collect()
            }
            false => state.entries.keys().filter(|i| gone != Some(**i)).copied().collect(),
        };
        (std::mem::replace(&mut state.on, after.clone()), after)
    };
    for sw_if in before.symmetric_difference(&after) {
        if let Err(e) = c.enable_feature(arc, node, *sw_if, after.contains(sw_if)) {
            tracing::error!("{}: {e}", c.interface_name(*sw_if));
        }
    }
    let mut state = state.borrow_mut();
    let known = match state.entries.contains_key(&ALL) {
        true => Redirected::All,
        false => Redirected::Of(after),
    };
    if state.known != known {
        state.known = known.clone();
        punt::redirect(c, from, known);
    }
}

/// Makes a new interface punt if all do.
fn created<A: Address>(c: &mut Control, sw_if: SwIfIndex) {
    let (arc, node, _) = names::<A>();
    let is_new = {
        let state = c.state::<State<A>>();
        let mut state = state.borrow_mut();
        state.entries.contains_key(&ALL) && state.on.insert(sw_if)
    };
    if is_new && let Err(e) = c.enable_feature(arc, node, sw_if, true) {
        tracing::error!("{}: {e}", c.interface_name(sw_if));
    }
}

/// Removes the redirect of an interface that is gone, and paths by it.
fn gone<A: Address>(c: &mut Control, sw_if: SwIfIndex) {
    c.state::<State<A>>().borrow_mut().on.remove(&sw_if);
    if c.state::<State<A>>().borrow().entries.contains_key(&sw_if) {
        replace::<A>(c, sw_if, None, Some(sw_if));
    }
    let by_it: Vec<(SwIfIndex, Vec<Path>)> = all::<A>(c)
        .into_iter()
        .map(|(rx_if, paths, _)| (rx_if, paths))
        .filter(|(_, paths)| paths.iter().any(|p| p.sw_if == Some(sw_if)))
        .collect();
    for (rx_if, mut paths) in by_it {
        paths.retain(|p| p.sw_if != Some(sw_if));
        let left = if paths.is_empty() { None } else { resolve::<A>(c, paths).ok() };
        replace::<A>(c, rx_if, left, Some(sw_if));
    }
}
