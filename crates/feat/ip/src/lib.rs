//! Common parts of both versions of IP: tables, routes, addresses of interfaces and `ping`, with
//! their commands, API messages and settings.
//!
//! A protocol registers itself as a [`Family`] and brings nodes, the table that workers read, and
//! the rules of its addresses. Commands and messages find it by the version of an address; a
//! version that nobody has registered is refused.
//!
//! * [`family`]: what a protocol brings along.
//! * [`table`]: tables and their routes.
//! * [`address`]: interface addresses and their routes.
//! * [`replace`]: replacing all routes of a table.
//! * [`link`]: link headers of packets, and [`rewrite_out`], a node that writes them.
//! * [`icmp_errors`]: ICMP errors, their rate limit and way out.
//! * [`local`]: who takes packets to the router itself, and [`demux`], their nodes.
//! * [`lookup`]: verdicts for packets that have been looked up.
//! * [`path_mtu`]: the longest packet that reaches an address.
//! * [`redirect`]: where punted packets go, and [`punt_redirect`], their node.
//! * [`start`]: the beginning of an arc, and an end.
//! * [`places`]: where workers find the table of an interface; [`published`]: what they read there.
//! * [`ping`]: the router's own echo requests.
#![forbid(unsafe_code)]

pub mod address;
mod addressed;
pub mod api;
pub mod api_path;
pub mod api_types;
mod bound;
pub mod cli;
mod cli_args;
pub mod demux;
pub mod enabled;
pub mod family;
mod fib_text;
pub mod icmp_errors;
mod lenders;
pub mod link;
pub mod local;
pub mod lookup;
pub mod message_types;
pub mod path_mtu;
pub mod ping;
pub mod places;
pub mod prefixes;
pub mod published;
pub mod punt_redirect;
pub mod redirect;
pub mod replace;
pub mod rewrite_out;
mod settings;
pub mod start;
mod subnets;
pub mod table;

pub use address::{AddressError, refresh_routes};
pub use cli_args::{address_failed, label_arg, path_arg};
pub use family::{Family, IfAddress, Leaves, Version, register};
pub use settings::Settings;
pub use table::{
    RouteError, add_route, add_table, del_route, del_table, drop_needed, need_table,
    set_found_route, track,
};
pub use thalweg_fib::rib::{Path, PathKind, RibError, RouteView, RoutedPeers, Source, TableId};

use addressed::Addressed;
use bound::Bound;
use lenders::Lenders;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};
use subnets::Subnets;
use table::Table;
use thalweg_device::{InterfaceEvent, Interfaces, SwIfIndex};
use thalweg_engine::Feature;
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix, Sweep};

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "ip",
    about: "IP routes, addresses and ping",
    needs: &[&thalweg_device::FEATURE, &thalweg_fib::FEATURE],
    commands: cli::COMMANDS,
    api: api::SERVICES,
    init,
    ready,
    ..Feature::DEFAULT
};

/// The event that an interface's addresses have changed, or whether it speaks the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressesChanged {
    /// Version of the addresses.
    pub version: Version,
    /// The interface.
    pub sw_if: SwIfIndex,
}

/// The event that addresses which a protocol has found on an interface are about to be taken away
/// for what a user has written; [`FoundDisplaced`] follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundDisplacing {
    /// The interface.
    pub sw_if: SwIfIndex,
}

/// The event that addresses which a protocol has found on an interface were taken away for what a
/// user has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundDisplaced {
    /// Version of the addresses.
    pub version: Version,
    /// The interface.
    pub sw_if: SwIfIndex,
}

/// The event that an interface was moved to another routing table. The interface has no addresses
/// then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceTableChanged {
    /// Version of the table.
    pub version: Version,
    /// The interface.
    pub sw_if: SwIfIndex,
}

/// The event that a routing table was deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableDeleted {
    /// Version of the table.
    pub version: Version,
    /// Its number, which another table may get.
    pub table: TableId,
}

/// The event that routes have put other hosts on an interface: see [`Ip::routed_peers`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoutedPeersChanged {
    /// Version of the routes.
    pub version: Version,
    /// The interface.
    pub sw_if: SwIfIndex,
}

/// Prefixes of routes that were added and must stay.
type Added<A> = Rc<RefCell<HashSet<Prefix<A>>>>;

/// A version of IP on the main thread.
pub struct Ip<A: Address> {
    /// Its protocol, once that is registered.
    family: Option<&'static dyn Family<A>>,
    tables: BTreeMap<TableId, Table<A>>,
    /// User-given names of tables.
    names: BTreeMap<TableId, String>,
    /// Deleted tables that still have users.
    leaving: BTreeSet<TableId>,
    /// Tables that only the kernel needs, not a user.
    needed: BTreeSet<TableId>,
    /// Tables whose packets without a route are answered by ICMP errors.
    unreachables: BTreeSet<TableId>,
    bound: Bound,
    addresses: BTreeMap<SwIfIndex, Vec<IfAddress<A>>>,
    /// The interfaces with addresses by table.
    addressed: Addressed,
    /// Interfaces of the subnets, for each table.
    subnets: BTreeMap<TableId, Subnets<A, SwIfIndex>>,
    /// Addresses that a protocol has found, not a user.
    found: BTreeSet<(SwIfIndex, IfAddress<A>)>,
    /// Unnumbered interfaces, each with the one whose addresses it borrows.
    lenders: Lenders,
    /// Unnumbered interfaces whose subscribers are still to learn of other addresses.
    borrowers_due: BTreeSet<SwIfIndex>,
    /// Interfaces with addresses that are down: these addresses have no routes.
    down: BTreeSet<SwIfIndex>,
    /// Interfaces that speak the version without an address.
    enabled: BTreeSet<SwIfIndex>,
    /// Interfaces that speak the version for a feature's sake.
    spoken: BTreeSet<SwIfIndex>,
    /// Tables of which routes of deleted interfaces are still to be removed.
    unsettled: BTreeSet<TableId>,
    /// Tables whose routes are being replaced, each with the prefixes added since.
    replacing: BTreeMap<TableId, Added<A>>,
    /// Tables of which other routes are being deleted, in slices.
    sweeping: Vec<(TableId, Added<A>)>,
    /// Addresses that are removed unless they are added again.
    stale: BTreeSet<(SwIfIndex, IfAddress<A>)>,
    /// Interfaces of which subscribers are still to learn that routes have changed their peers.
    peers_changed: BTreeSet<SwIfIndex>,
    /// Time when they learned of it last.
    peers_published: Option<Instant>,
    /// Number of tables created so far.
    serial: u32,
}

/// IPv4 on the main thread.
pub type Ip4 = Ip<u32>;
/// IPv6 on the main thread.
pub type Ip6 = Ip<u128>;

/// Maximum number of tables of a version.
pub const MAX_TABLES: usize = 1024;

fn init(c: &mut Control) {
    c.insert(Ip4::new());
    c.insert(Ip6::new());
    ping::init(c);
    redirect::init::<u32>(c);
    path_mtu::init::<u32>(c);
    path_mtu::init::<u128>(c);
    redirect::init::<u128>(c);
    c.subscribe(|c, e| {
        // A new interface without an address is in table 0, as those that workers do not know.
        match *e {
            InterfaceEvent::Deleted(i) => {
                address::interface_gone::<u32>(c, i);
                address::interface_gone::<u128>(c, i);
            }
            InterfaceEvent::State(i) => {
                address::state_changed::<u32>(c, i);
                address::state_changed::<u128>(c, i);
            }
            _ => {}
        }
    });
    let all = c.state::<Interfaces>();
    let mut all = all.borrow_mut();
    all.describe_addresses(|c, i| [describe::<u32>(c, i), describe::<u128>(c, i)].concat());
}

/// Lines of `show interface address`.
fn describe<A: Address>(c: &Control, sw_if: SwIfIndex) -> Vec<String> {
    let (ip, word) = (c.state::<Ip<A>>(), Version::of::<A>().protocol());
    let ip = ip.borrow();
    let line = |a: &IfAddress<A>| match ip.table_of(sw_if) {
        TableId(0) => format!("L3 {a}"),
        t => format!("L3 {a} {word} table-id {t} fib-idx {t}"),
    };
    let own = ip.addresses(sw_if).iter().map(line);
    // Versions borrow together, so that one says so.
    let lender = ip.lender(sw_if).filter(|_| Version::of::<A>() == Version::V4);
    let borrowed = lender.map(|lender| format!("unnumbered, use {}", c.interface_name(lender)));
    own.chain(borrowed).collect()
}

fn ready(c: &mut Control) {
    begin::<u32>(c);
    begin::<u128>(c);
    c.every(Duration::from_millis(500), |c| {
        reclaim::<u32>(c);
        reclaim::<u128>(c);
        true
    });
}

/// Adds table 0, which always exists.
fn begin<A: Address>(c: &mut Control) {
    if family::family::<A>(c).is_ok()
        && let Err(e) = add_table::<A>(c, TableId(0))
    {
        tracing::error!("{} table 0: {e}", Version::of::<A>().name());
    }
}

fn reclaim<A: Address>(c: &mut Control) {
    let ip = c.state::<Ip<A>>();
    for t in ip.borrow_mut().tables.values_mut() {
        t.lpm_mut().reclaim(c.domain());
        t.release_tracked(c);
    }
    table::delete_leaving::<A>(c);
}

/// Checks that a command line and a document can say the name of a table.
///
/// # Errors
/// The rule for names.
pub(crate) fn check_table_name(name: &str) -> Result<(), String> {
    let odd = |c: char| c.is_control() || ['\'', '"'].contains(&c);
    match name.len() <= 63 && !name.contains(odd) {
        true => Ok(()),
        false => Err("up to 63 bytes, without quotes and control characters".into()),
    }
}

impl<A: Address> Ip<A> {
    fn new() -> Self {
        Ip {
            family: None,
            tables: BTreeMap::new(),
            names: BTreeMap::new(),
            leaving: BTreeSet::new(),
            needed: BTreeSet::new(),
            unreachables: BTreeSet::new(),
            down: BTreeSet::new(),
            enabled: BTreeSet::new(),
            spoken: BTreeSet::new(),
            bound: Bound::default(),
            addresses: BTreeMap::new(),
            addressed: Addressed::default(),
            subnets: BTreeMap::new(),
            found: BTreeSet::new(),
            lenders: Lenders::default(),
            borrowers_due: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            replacing: BTreeMap::new(),
            sweeping: Vec::new(),
            stale: BTreeSet::new(),
            peers_changed: BTreeSet::new(),
            peers_published: None,
            serial: 0,
        }
    }
    /// Returns whether all routes of deleted interfaces are removed: many take some slices.
    pub fn is_resolved(&self) -> bool {
        self.unsettled.is_empty()
    }
    /// Ids of all tables.
    pub fn table_ids(&self) -> Vec<TableId> {
        self.tables.keys().copied().collect()
    }
    /// Returns a number that distinguishes a table from an earlier one with the same id.
    pub fn serial(&self, table: TableId) -> Option<u32> {
        self.tables.get(&table).map(Table::serial)
    }
    /// Name of a table.
    pub fn table_name(&self, table: TableId) -> String {
        let usual = || Version::of::<A>().table_name(table);
        self.names.get(&table).cloned().unwrap_or_else(usual)
    }
    /// Names that users gave to tables.
    pub(crate) fn table_names(&self) -> impl Iterator<Item = (TableId, &str)> {
        self.names.iter().map(|(id, name)| (*id, name.as_str()))
    }
    /// Names a table; an empty name is the usual one.
    pub(crate) fn name_table(&mut self, table: TableId, name: &str) {
        self.adopt(table);
        match name {
            "" => _ = self.names.remove(&table),
            name => _ = self.names.insert(table, name.to_owned()),
        }
    }
    /// Returns whether packets that no route of a table leads on are answered by ICMP errors, or
    /// just dropped.
    pub fn answers_unreachable(&self, table: TableId) -> bool {
        self.unreachables.contains(&table)
    }
    /// Tables of which packets without a route are answered.
    pub(crate) fn answering(&self) -> impl Iterator<Item = TableId> {
        self.unreachables.iter().copied()
    }
    /// Table of an interface.
    pub fn table_of(&self, sw_if: SwIfIndex) -> TableId {
        self.bound.table(sw_if).unwrap_or(TableId(0))
    }
    /// Interfaces that were given a table, in order.
    pub fn bound_to(&self, table: TableId) -> impl Iterator<Item = SwIfIndex> + '_ {
        self.bound.to(table)
    }
    /// Interfaces that have addresses or a table of their own, or are unnumbered.
    pub fn interfaces(&self) -> BTreeSet<SwIfIndex> {
        let others = self.addresses.keys().chain(self.lenders.borrowers()).copied();
        self.bound.interfaces().chain(others).collect()
    }
    /// Notes what an interface has after a change of its addresses, its table or its lender's.
    pub(crate) fn note_addresses(&mut self, sw_if: SwIfIndex) {
        let own = !self.addresses(sw_if).is_empty();
        let has = self.usable_addresses(sw_if).next().map(|_| (self.table_of(sw_if), own));
        self.addressed.set(sw_if, has);
    }
    /// First interface of a table that has addresses of its own.
    pub fn first_with_own(&self, table: TableId) -> Option<SwIfIndex> {
        self.addressed.with_own(table).next()
    }
    /// First interface of a table that has addresses of its own; if none has, the first that
    /// borrows some. One that borrowed until now may still be named: it is published next.
    pub fn first_addressed(&self, table: TableId) -> Option<SwIfIndex> {
        self.first_with_own(table).or_else(|| self.addressed.borrowing(table).next())
    }
    /// Number of routes in a table.
    pub fn route_count(&self, table: TableId) -> usize {
        self.tables.get(&table).map_or(0, Table::len)
    }
    /// Memory of a table in bytes.
    pub fn table_memory(&self, table: TableId) -> usize {
        self.tables.get(&table).map_or(0, Table::memory)
    }
    /// All routes of a table in order.
    pub fn routes(&self, table: TableId) -> Vec<RouteView<A>> {
        self.tables.get(&table).map_or_else(Vec::new, |t| t.iter().collect())
    }
    /// Number of routes of a table by prefix length.
    pub fn counts_by_length(&self, table: TableId) -> Vec<usize> {
        self.tables.get(&table).map_or_else(Vec::new, |t| t.lpm().lengths())
    }
    /// Continues a walk over a table's configured routes, a few hundred at most, unordered; returns
    /// false at the end. A prefix may be visited twice.
    pub fn sweep_configured(
        &self,
        table: TableId,
        at: &mut Sweep,
        out: &mut Vec<(Prefix<A>, Vec<Path>)>,
    ) -> bool {
        self.tables.get(&table).is_some_and(|t| t.sweep_configured(at, out))
    }
    /// Looks up a route by exact prefix.
    pub fn route(&self, table: TableId, prefix: Prefix<A>) -> Option<RouteView<A>> {
        self.tables.get(&table)?.view(prefix)
    }
    /// Looks up the longest match of a destination.
    pub fn lookup(&self, table: TableId, addr: A) -> Option<RouteView<A>> {
        self.tables.get(&table)?.lookup(addr)
    }
    /// Returns which hosts are on an interface by the routes of all tables.
    pub fn routed_peers(&self, sw_if: SwIfIndex) -> RoutedPeers<A> {
        let mut all = RoutedPeers { attached: Vec::new(), next_hops: Vec::new() };
        for some in self.tables.values().map(|t| t.routed_peers(sw_if)) {
            all.attached.extend(some.attached);
            all.next_hops.extend(some.next_hops);
        }
        all.attached.sort_unstable();
        all.attached.dedup();
        all.next_hops.sort_unstable();
        all.next_hops.dedup();
        all
    }
    /// Returns for each path of a route why it leads nowhere now, if it does not.
    pub fn unresolved(
        &self,
        c: &Control,
        table: TableId,
        view: &RouteView<A>,
    ) -> Vec<Option<String>> {
        let all = self.tables.get(&table).map_or_else(Vec::new, |t| t.unresolved(c, view));
        all.into_iter().map(|why| why.map(|e| e.to_string())).collect()
    }
    /// The interface whose addresses an unnumbered interface borrows.
    pub fn lender(&self, sw_if: SwIfIndex) -> Option<SwIfIndex> {
        self.lenders.get(sw_if)
    }
    /// Unnumbered interfaces, each with the one whose addresses it borrows.
    pub fn lenders(&self) -> impl Iterator<Item = (SwIfIndex, SwIfIndex)> + '_ {
        self.lenders.iter()
    }
    /// Addresses that an interface uses: its own, then those that it borrows.
    pub fn usable_addresses(
        &self,
        sw_if: SwIfIndex,
    ) -> impl Iterator<Item = &IfAddress<A>> + Clone {
        let borrowed = self.lender(sw_if).map_or(&[][..], |lender| self.addresses(lender));
        self.addresses(sw_if).iter().chain(borrowed)
    }
    /// Returns whether an interface speaks this version: it has an address, or is enabled.
    pub fn is_enabled(&self, sw_if: SwIfIndex) -> bool {
        let wanted = self.enabled.contains(&sw_if) || self.spoken.contains(&sw_if);
        wanted || self.usable_addresses(sw_if).next().is_some()
    }
    /// Returns whether an interface is enabled whatever its addresses are.
    pub fn is_configured(&self, sw_if: SwIfIndex) -> bool {
        self.enabled.contains(&sw_if)
    }
    /// Returns whether a protocol has found an address of an interface, and no user chose it.
    pub fn is_found(&self, sw_if: SwIfIndex, address: IfAddress<A>) -> bool {
        self.found.contains(&(sw_if, address))
    }
    /// Addresses of an interface in the order in which they were added.
    pub fn addresses(&self, sw_if: SwIfIndex) -> &[IfAddress<A>] {
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
