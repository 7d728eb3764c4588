//! IPv4: input checks, lookup, forwarding, local delivery, ICMP, fragmentation, ping.
//!
//! * [`tables`]: tables as workers read them.
//! * [`route`]: routes on the main thread.
//! * [`address`]: interface addresses and their routes.
//! * [`local`]: who takes packets to the router itself.
//! * [`ping`]: the router's own echo requests.
#![forbid(unsafe_code)]

pub mod address;
pub mod api;
mod api_types;
pub mod cli;
mod cli_args;
mod fib_text;
pub mod icmp;
pub mod local;
pub mod nodes;
pub mod ping;
pub mod prefixes;
pub mod replace;
pub mod route;
mod settings;
pub mod tables;

pub use route::{Path, PathKind, RibError, RouteError, RouteView, Source};

use crate::route::Table;
use crate::tables::{Fib, IfIp4, Tables};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use thalweg_device::{InterfaceEvent, Interfaces, SwIfIndex};
use thalweg_engine::Feature;
use thalweg_fib::{Dpo, Forwarding, Kind, LinkType};
use thalweg_graph::{ArcDecl, ArcKey, Control, Topic};
use thalweg_tables::snapshot::{self, Snapshot};
use thalweg_tables::{CowTable, Ipv4Prefix, Lpm4, Sweep, lpm4};
use thalweg_wire::ethernet::ethertype;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "ip4",
    about: "IPv4 forwarding",
    nodes: nodes::NODES,
    arcs: &[
        &ArcDecl { name: "ip4-unicast", key: ArcKey::Rx, end: "ip4-lookup" },
        // ICMP errors sent by the router, by rx interface of the offending packet.
        &ArcDecl { name: "ip4-icmp-error-reply", key: ArcKey::Rx, end: "ip4-lookup" },
    ],
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&settings::SETTINGS],
    init,
    ready,
};

/// Topics of IPv4 nodes' events.
pub struct Topics {
    pub(crate) echo_reply: Topic,
}

/// Called with an interface whose addresses or table have changed.
type AddressSubscriber = Rc<dyn Fn(&mut Control, SwIfIndex)>;

/// IPv4 on the main thread.
pub struct Ip4 {
    tables: BTreeMap<u32, Table>,
    /// Table of each interface, if not 0.
    bound: BTreeMap<SwIfIndex, u32>,
    addresses: BTreeMap<SwIfIndex, Vec<(Ipv4Addr, u8)>>,
    /// Tables whose routes are being replaced, each with the prefixes added since.
    replacing: BTreeMap<u32, HashSet<Ipv4Prefix>>,
    /// Addresses that are removed unless they are added again.
    stale: BTreeSet<(SwIfIndex, Ipv4Addr, u8)>,
    writer: snapshot::Writer<Tables>,
    /// Number of tables created so far.
    serial: u32,
    /// Subscribers to address changes.
    subscribers: Vec<AddressSubscriber>,
}

/// Maximum number of tables.
pub const MAX_TABLES: usize = 1024;

fn init(c: &mut Control) {
    let (writer, snapshot) =
        snapshot::channel(Tables { fibs: Vec::new(), interfaces: CowTable::default() });
    let snapshot: Arc<Snapshot<Tables>> = snapshot;
    c.share(snapshot.clone());
    c.shared::<thalweg_fib::RouteBook>().add(Arc::new(tables::Lengths(snapshot)));
    c.insert(Ip4 {
        tables: BTreeMap::new(),
        bound: BTreeMap::new(),
        addresses: BTreeMap::new(),
        replacing: BTreeMap::new(),
        stale: BTreeSet::new(),
        writer,
        serial: 0,
        subscribers: Vec::new(),
    });
    c.state::<Forwarding>().borrow_mut().set_exit(LinkType::Ip4, Kind::LOCAL, "ip4-local");
    ping::init(c);
    local::init(c);
    c.insert(api_types::Names::default());
    thalweg_feat_ethernet::register(c, ethertype::IPV4, "ip4-input");
    // ARP does not depend on ethernet-input, and only IPv4 needs it.
    thalweg_feat_ethernet::register(c, ethertype::ARP, "arp-input");
    let all = c.state::<Interfaces>();
    let mut all = all.borrow_mut();
    all.subscribe(|c, e| {
        // Without an address a new one is in table 0, as those that workers do not know.
        if let InterfaceEvent::Deleted(i) = e {
            address::interface_gone(c, i);
        }
    });
    all.describe_addresses(|c, i| {
        let ip4 = c.state::<Ip4>();
        let ip4 = ip4.borrow();
        let table = ip4.bound.get(&i).copied().unwrap_or(0);
        let line = |(a, l): &(Ipv4Addr, u8)| match table {
            0 => format!("L3 {a}/{l}"),
            t => format!("L3 {a}/{l} ip4 table-id {t} fib-idx {t}"),
        };
        ip4.addresses.get(&i).into_iter().flatten().map(line).collect()
    });
}

fn ready(c: &mut Control) {
    // Table 0 always exists.
    if let Err(e) = add_table(c, 0) {
        tracing::error!("IPv4 table 0: {e}");
    }
    address::follow_neighbors(c);
    local::publish(c);
    c.every(std::time::Duration::from_millis(500), |c| {
        let ip4 = c.state::<Ip4>();
        for t in ip4.borrow_mut().tables.values_mut() {
            t.lpm_mut().reclaim(c.domain());
            t.release_tracked(c);
        }
        true
    });
}

/// Adds a routing table, unless it exists.
///
/// # Errors
/// If the limit of tables is reached or memory exhausted.
pub fn add_table(c: &mut Control, id: u32) -> Result<(), RouteError> {
    let ip4 = c.state::<Ip4>();
    if ip4.borrow().tables.contains_key(&id) {
        return Ok(());
    }
    if ip4.borrow().tables.len() >= MAX_TABLES {
        return Err(RouteError::TooManyTables);
    }
    // Small tables should not use huge pages.
    let pages = if id == 0 { thalweg_tables::Pages::Huge } else { thalweg_tables::Pages::Normal };
    let lpm = Lpm4::new(lpm4::Lpm4Config { pages, ..Default::default() })?;
    let serial = {
        let mut ip4 = ip4.borrow_mut();
        ip4.serial += 1;
        ip4.serial
    };
    let mut table = Table::new(id, serial, LinkType::Ip4, lpm);
    for (addr, len) in [(0, 32), (0xf000_0000, 4), (0xe000_0000, 4), (u32::MAX, 32)] {
        if let Ok(prefix) = Ipv4Prefix::new(addr, len) {
            table.set(c, prefix, Source::Default, vec![Path::special(PathKind::Drop)])?;
        }
    }
    ip4.borrow_mut().tables.insert(id, table);
    publish(c);
    Ok(())
}

/// Deletes a routing table with all its routes.
///
/// # Errors
/// If it is table 0, an interface uses it, or it does not exist.
pub fn del_table(c: &mut Control, id: u32) -> Result<(), RouteError> {
    let ip4 = c.state::<Ip4>();
    if id == 0 {
        return Err(RouteError::MainTable);
    }
    let user = ip4.borrow().bound.iter().find(|(_, t)| **t == id).map(|(i, _)| *i);
    if let Some(i) = user {
        return Err(RouteError::TableInUse { table: id, interface: c.interface_name(i) });
    }
    if ip4.borrow_mut().tables.get_mut(&id).is_some_and(|t| t.release_tracked(c)) {
        return Err(RouteError::TableTracked(id));
    }
    ip4.borrow_mut().replacing.remove(&id);
    let gone = ip4.borrow_mut().tables.remove(&id);
    let mut gone = gone.ok_or(RouteError::NoTable(id))?;
    publish(c);
    gone.clear(c);
    // Workers may still be reading it.
    c.domain().retire(move || discard(gone));
    Ok(())
}

/// Frees a table on a thread of its own: unmapping tens of MiB takes the kernel milliseconds.
fn discard(table: Table) {
    if table.len() < 10_000 {
        return;
    }
    let thread = std::thread::Builder::new().name("discard".into());
    // Without a thread it is dropped here.
    let _ = thread.spawn(move || drop(table));
}

/// Publishes tables and addresses to workers.
fn publish(c: &mut Control) {
    let ip4 = c.state::<Ip4>();
    let mut ip4 = ip4.borrow_mut();
    let fib = |t: &Table| Fib { id: t.id(), serial: t.serial(), routes: t.lpm().reader() };
    let fibs: Vec<_> = ip4.tables.values().map(fib).collect();
    let mut interfaces = CowTable::default();
    for i in ip4.bound.keys().chain(ip4.addresses.keys()) {
        interfaces.set(*i, ip4.row(*i, &fibs));
    }
    ip4.writer.publish(c.domain(), Tables { fibs, interfaces });
}

/// Publishes one interface's table and address.
fn publish_interface(c: &mut Control, sw_if: SwIfIndex) {
    let ip4 = c.state::<Ip4>();
    let mut ip4 = ip4.borrow_mut();
    let mut tables = ip4.writer.get().clone();
    let row = ip4.row(sw_if, &tables.fibs);
    tables.interfaces.set(sw_if, row);
    ip4.writer.publish(c.domain(), tables);
}

impl Ip4 {
    /// What workers read of an interface.
    fn row(&self, sw_if: SwIfIndex, fibs: &[Fib]) -> IfIp4 {
        let table = self.bound.get(&sw_if).copied().unwrap_or(0);
        IfIp4 {
            fib: fibs.iter().position(|f| f.id == table).unwrap_or(0) as u16,
            address: self.addresses.get(&sw_if).and_then(|a| a.first()).map(|a| a.0),
        }
    }
}

/// Adds paths to a route, or replaces them (`replace`). Routes that resolve their next hop through
/// this one follow at once.
///
/// # Errors
/// [`RouteError`]; the route is unchanged then.
pub fn add_route(
    c: &mut Control,
    table: u32,
    prefix: Ipv4Prefix,
    paths: Vec<Path>,
    replace: bool,
) -> Result<(), RouteError> {
    let ip4 = c.state::<Ip4>();
    let mut ip4 = ip4.borrow_mut();
    // Next hops of other tables are followed there.
    let mut tracked = Vec::new();
    for path in paths.iter().filter(|p| p.table.is_some_and(|id| id != table)) {
        match track_path(c, &mut ip4, path) {
            Ok(dpo) => tracked.extend(dpo),
            Err(e) => {
                release(c, &tracked);
                return Err(e);
            }
        }
    }
    let done = ip4.put_route(c, table, prefix, paths, replace);
    release(c, &tracked);
    done
}

/// Follows the next hop of a path in the table that it names.
fn track_path(c: &Control, ip4: &mut Ip4, path: &Path) -> Result<Option<Dpo>, RouteError> {
    let (Some(id), Some(IpAddr::V4(next_hop))) = (path.table, path.next_hop) else {
        return Ok(None);
    };
    let t = ip4.tables.get_mut(&id).ok_or(RouteError::NoTable(id))?;
    Ok(Some(t.track(c, next_hop.to_bits())?))
}

fn release(c: &Control, dpos: &[Dpo]) {
    let f = c.state::<Forwarding>();
    dpos.iter().for_each(|dpo| f.borrow_mut().release(c, *dpo));
}

/// Returns the object that follows the route of an address in a table, with a reference: for
/// tunnels to that address.
///
/// # Errors
/// If the table does not exist, or no route leads there now.
pub fn track(c: &mut Control, table: u32, address: Ipv4Addr) -> Result<Dpo, RouteError> {
    let ip4 = c.state::<Ip4>();
    let mut ip4 = ip4.borrow_mut();
    let t = ip4.tables.get_mut(&table).ok_or(RouteError::NoTable(table))?;
    Ok(t.track(c, address.to_bits())?)
}

impl Ip4 {
    fn put_route(
        &mut self,
        c: &Control,
        table: u32,
        prefix: Ipv4Prefix,
        mut paths: Vec<Path>,
        replace: bool,
    ) -> Result<(), RouteError> {
        let t = self.tables.get_mut(&table).ok_or(RouteError::NoTable(table))?;
        // A special path cannot share load.
        let ends = paths.iter().any(|p| p.kind != PathKind::Normal);
        if !replace
            && !ends
            && let Some(old) = t.paths(prefix, Source::Static)
        {
            let keep = old.into_iter().filter(|o| !paths.iter().any(|p| p.is_same(o)));
            let keep: Vec<Path> = keep.filter(|o| o.kind == PathKind::Normal).collect();
            paths.extend(keep);
        }
        t.set(c, prefix, Source::Static, paths)?;
        if let Some(added) = self.replacing.get_mut(&table) {
            added.insert(prefix);
        }
        Ok(())
    }
}

/// Removes paths from a route, or the whole route if `paths` is empty.
///
/// # Errors
/// [`RouteError::NoRoute`] if the route or path does not exist.
pub fn del_route(
    c: &mut Control,
    table: u32,
    prefix: Ipv4Prefix,
    paths: &[Path],
) -> Result<(), RouteError> {
    let ip4 = c.state::<Ip4>();
    let mut ip4 = ip4.borrow_mut();
    let t = ip4.tables.get_mut(&table).ok_or(RouteError::NoTable(table))?;
    let Some(mut left) = t.paths(prefix, Source::Static) else {
        let hint = match t.view(prefix) {
            Some(v) => format!(" that was configured (this one is from: {})", v.source.word()),
            None => String::new(),
        };
        return Err(RouteError::NoRoute { prefix, table, hint });
    };
    for p in paths {
        let n = left.len();
        let same = |o: &Path| {
            (o.kind, o.next_hop) == (p.kind, p.next_hop)
                && (p.sw_if.is_none() || o.sw_if == p.sw_if)
                && (p.table.is_none() || o.table == p.table.filter(|id| *id != table))
        };
        left.retain(|o| !same(o));
        if left.len() == n {
            return Err(RouteError::NoRoute { prefix, table, hint: " with that path".into() });
        }
    }
    if paths.is_empty() || left.is_empty() {
        t.unset(c, prefix, Source::Static);
        return Ok(());
    }
    Ok(t.set(c, prefix, Source::Static, left)?)
}

impl Ip4 {
    /// Returns whether all routes of deleted interfaces are removed: many take some slices.
    pub fn is_resolved(&self) -> bool {
        self.tables.values().all(Table::is_settled)
    }
    /// Ids of all tables.
    pub fn table_ids(&self) -> Vec<u32> {
        self.tables.keys().copied().collect()
    }
    /// Table of an interface.
    pub fn table_of(&self, sw_if: SwIfIndex) -> u32 {
        self.bound.get(&sw_if).copied().unwrap_or(0)
    }
    /// Calls `f` whenever an interface's addresses or table change.
    pub fn on_address_change(&mut self, f: impl Fn(&mut Control, SwIfIndex) + 'static) {
        self.subscribers.push(Rc::new(f));
    }
    /// Number of routes in a table.
    pub fn route_count(&self, table: u32) -> usize {
        self.tables.get(&table).map_or(0, Table::len)
    }
    /// Memory of a table in bytes.
    pub fn table_memory(&self, table: u32) -> usize {
        self.tables.get(&table).map_or(0, Table::memory)
    }
    /// All routes of a table in order.
    pub fn routes(&self, table: u32) -> Vec<RouteView> {
        self.tables.get(&table).map_or_else(Vec::new, |t| t.iter().collect())
    }
    /// Number of routes of a table by prefix length.
    pub fn counts_by_length(&self, table: u32) -> [usize; 33] {
        self.tables.get(&table).map_or([0; 33], |t| t.lpm().lengths())
    }
    /// Continues a walk over a table's configured routes, a few hundred at most, unordered; returns
    /// false at the end. A prefix may be visited twice.
    pub fn sweep_configured(
        &self,
        table: u32,
        at: &mut Sweep,
        out: &mut Vec<(Ipv4Prefix, Vec<Path>)>,
    ) -> bool {
        self.tables.get(&table).is_some_and(|t| t.sweep_configured(at, out))
    }
    /// Looks up a route by exact prefix.
    pub fn route(&self, table: u32, prefix: Ipv4Prefix) -> Option<RouteView> {
        self.tables.get(&table)?.view(prefix)
    }
    /// Looks up the longest match of a destination.
    pub fn lookup(&self, table: u32, addr: Ipv4Addr) -> Option<RouteView> {
        self.tables.get(&table)?.lookup(addr.to_bits())
    }
    /// Addresses of an interface in the order in which they were added.
    pub fn addresses(&self, sw_if: SwIfIndex) -> &[(Ipv4Addr, u8)] {
        self.addresses.get(&sw_if).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
