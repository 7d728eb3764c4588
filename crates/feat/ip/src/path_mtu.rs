//! Path MTUs: the longest packet that reaches an address, where that is less than the link says.

use crate::Ip;
use crate::family::Version;
use crate::table::RouteError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thalweg_device::{InterfaceEvent, Interfaces, SwIfIndex};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::Address;
use thalweg_tables::snapshot::{self, Snapshot};

/// Maximum number of path MTUs of a version.
pub const MAX_PATH_MTUS: usize = 8192;
/// Largest path MTU in bytes.
pub const LARGEST: u16 = u16::MAX - 1;

/// Path MTUs of a version, as workers read them.
#[derive(Debug)]
pub struct PathMtus<A>(BTreeMap<(TableId, A), u16>);

impl<A: Address> PathMtus<A> {
    /// Returns the path MTU in bytes to an address of a table.
    #[inline]
    pub fn get(&self, table: TableId, address: A) -> Option<u16> {
        self.0.get(&(table, address)).copied()
    }
}

/// Path MTUs of a version on the main thread.
struct State<A: Address> {
    mtus: BTreeMap<(TableId, A), u16>,
    /// Path MTUs that the end of a replacement removes.
    stale: BTreeSet<(TableId, A)>,
    writer: snapshot::Writer<PathMtus<A>>,
    /// Workers are still to learn of a change.
    due: bool,
    /// Interfaces that have the node on their arc.
    on: BTreeSet<SwIfIndex>,
}

/// Reason why a path MTU is refused.
#[derive(Debug, thiserror::Error)]
pub enum PathMtuError {
    /// The value is out of range.
    #[error("the {version} path MTU must be between {min} and {LARGEST}, not {mtu}", min = least(*.version))]
    Range {
        /// Version of the address.
        version: Version,
        /// The requested path MTU in bytes.
        mtu: u16,
    },
    /// The table is full.
    #[error("no room for another path MTU: the limit is {MAX_PATH_MTUS}")]
    Full,
    /// No such path MTU is set.
    #[error("no path MTU for {0}; `show ip pmtu' lists them")]
    Unknown(String),
    /// The table does not exist.
    #[error(transparent)]
    Table(#[from] RouteError),
}

/// The smallest path MTU in bytes: what each link of a version has (RFC 791 section 3.1, RFC 8200
/// section 5).
pub const fn least(version: Version) -> u16 {
    match version {
        Version::V4 => 68,
        Version::V6 => 1280,
    }
}

/// A version's output arc and node.
fn names<A: Address>() -> (&'static str, &'static str) {
    match Version::of::<A>() {
        Version::V4 => ("ip4-output", "ip4-path-mtu"),
        Version::V6 => ("ip6-output", "ip6-path-mtu"),
    }
}

pub(crate) fn init<A: Address>(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(PathMtus::<A>(BTreeMap::new()));
    let snapshot: Arc<Snapshot<PathMtus<A>>> = snapshot;
    c.share(snapshot);
    let (mtus, stale, on) =
        (BTreeMap::<(TableId, A), u16>::new(), BTreeSet::new(), BTreeSet::new());
    c.insert(State { mtus, stale, writer, due: false, on });
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::Created(i) => created::<A>(c, i),
        // Its features go with it.
        InterfaceEvent::Deleted(i) => _ = c.state::<State<A>>().borrow_mut().on.remove(&i),
        _ => {}
    });
}

/// Returns the path MTUs of tables that exist, in order.
pub fn all<A: Address>(c: &Control) -> Vec<((TableId, A), u16)> {
    let ip = c.state::<Ip<A>>();
    let ip = ip.borrow();
    let state = c.state::<State<A>>();
    let state = state.borrow();
    let there = state.mtus.iter().filter(|((table, _), _)| ip.serial(*table).is_some());
    there.map(|(at, mtu)| (*at, *mtu)).collect()
}

/// Sets the path MTU in bytes to an address of a table, for packets that come by interfaces of that
/// table and for the router's own; or, with `None`, removes it.
///
/// # Errors
/// [`PathMtuError`]; nothing has changed then.
pub fn set<A: Address>(
    c: &mut Control,
    table: TableId,
    address: A,
    mtu: Option<u16>,
) -> Result<(), PathMtuError> {
    {
        let ip = c.state::<Ip<A>>();
        let mut ip = ip.borrow_mut();
        if ip.serial(table).is_none() {
            return Err(ip.no_table(table).into());
        }
        if mtu.is_some() {
            ip.adopt(table);
        }
    }
    let version = Version::of::<A>();
    if let Some(mtu) = mtu.filter(|mtu| !(least(version)..=LARGEST).contains(mtu)) {
        return Err(PathMtuError::Range { version, mtu });
    }
    {
        let state = c.state::<State<A>>();
        let mut state = state.borrow_mut();
        let at = (table, address);
        match mtu {
            Some(mtu) => {
                if state.mtus.len() >= MAX_PATH_MTUS && !state.mtus.contains_key(&at) {
                    return Err(PathMtuError::Full);
                }
                state.mtus.insert(at, mtu);
            }
            None if state.mtus.remove(&at).is_none() => {
                return Err(PathMtuError::Unknown(address.to_ip().to_string()));
            }
            None => {}
        }
        state.stale.remove(&at);
    }
    publish_later::<A>(c);
    Ok(())
}

/// Begins a replacement: what is not set again until its end is removed then.
pub fn replace_begin<A: Address>(c: &mut Control) {
    let state = c.state::<State<A>>();
    let mut state = state.borrow_mut();
    state.stale = state.mtus.keys().copied().collect();
}

/// Ends a replacement.
pub fn replace_end<A: Address>(c: &mut Control) {
    {
        let state = c.state::<State<A>>();
        let mut state = state.borrow_mut();
        for at in std::mem::take(&mut state.stale) {
            state.mtus.remove(&at);
        }
    }
    publish_later::<A>(c);
}

/// Notifies workers of all changes of one loop at once.
fn publish_later<A: Address>(c: &mut Control) {
    let state = c.state::<State<A>>();
    if !std::mem::replace(&mut state.borrow_mut().due, true) {
        c.remote().submit(publish::<A>);
    }
}

fn publish<A: Address>(c: &mut Control) {
    {
        let state = c.state::<State<A>>();
        let mut state = state.borrow_mut();
        state.due = false;
        let mtus = PathMtus(state.mtus.clone());
        state.writer.publish(c.domain(), mtus);
    }
    follow::<A>(c);
}

/// Makes a new interface look at path MTUs if any are set.
fn created<A: Address>(c: &mut Control, sw_if: SwIfIndex) {
    let (arc, node) = names::<A>();
    let is_new = {
        let state = c.state::<State<A>>();
        let mut state = state.borrow_mut();
        !state.mtus.is_empty() && state.on.insert(sw_if)
    };
    if is_new && let Err(e) = c.enable_feature(arc, node, sw_if, true) {
        tracing::error!("{}: {e}", c.interface_name(sw_if));
    }
}

/// Makes all interfaces look at path MTUs while any are set.
fn follow<A: Address>(c: &mut Control) {
    let (arc, node) = names::<A>();
    let state = c.state::<State<A>>();
    let (before, after) = {
        let mut state = state.borrow_mut();
        // New interfaces begin to look when they come.
        if state.mtus.is_empty() == state.on.is_empty() {
            return;
        }
        let after: BTreeSet<SwIfIndex> = match state.mtus.is_empty() {
            false => c.state::<Interfaces>().borrow().iter().map(|v| v.sw_if).collect(),
            true => BTreeSet::new(),
        };
        (std::mem::replace(&mut state.on, after.clone()), after)
    };
    for sw_if in before.symmetric_difference(&after) {
        if let Err(e) = c.enable_feature(arc, node, *sw_if, after.contains(sw_if)) {
            tracing::error!("{}: {e}", c.interface_name(*sw_if));
        }
    }
}
