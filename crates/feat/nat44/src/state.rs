//! The NAT44 configuration on the main thread.

use crate::config::{Config, Timeouts};
use crate::counters::{COUNT, Counters};
use crate::log::{Log, Target};
use crate::mapping::{Hosts, Index, Mapping};
use crate::nodes::nat44_ed_ticker::Order;
use crate::ports::Scheme;
use crate::time;
use crate::waiting::Waiting;
use crate::worker::{Nat, Sweep};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use thalweg_device::{DeviceError, InterfaceEvent, SwIfIndex, interface};
use thalweg_feat_ip::{AddressesChanged, InterfaceTableChanged, Ip4, Version};
use thalweg_fib::TableId;
use thalweg_files::client::{Lease, Reserved};
use thalweg_graph::{Control, clock};
use thalweg_tables::MapError;
use thalweg_tables::snapshot;
use thalweg_wire::ip::protocol;
use thalweg_wire::nat::tuple::MAX_TABLE;

mod lent;
mod pools;
mod publish;
mod roles;
mod statics;
mod tuning;
mod vrf;

use pools::{Borrowed, borrow_again, forget_lender};
pub use pools::{set_addresses, set_interface_address};
use publish::{Change, Port, publish, publish_change, publish_none};
pub use roles::{Role, RolesChanged};
use roles::{greet, publish_role, set_role};
use statics::Claim;
pub use statics::{MAX_AFFINITY, MAX_MAPPINGS, add_mapping, del_mapping, set_backend};
pub(crate) use vrf::inside_vrf;
pub use vrf::{DefaultVrfs, MAX_VRF_ROUTES, MAX_VRFS, set_vrf_route, set_vrf_table};

pub use tuning::{
    MIN_MSS, set_forwarding, set_ipfix, set_limit, set_log, set_mss, set_refuse_when_full,
    set_scheme, set_timeouts, set_workers,
};

/// Default maximum number of sessions per worker.
pub const SESSIONS: u32 = 63 * 1024;
/// Largest maximum number of sessions per worker.
pub const MAX_SESSIONS: u32 = 1 << 26;
/// Maximum number of pool addresses.
pub const MAX_ADDRESSES: usize = 4096;
/// Maximum number of routing tables with a session limit.
pub const MAX_LIMITS: usize = 64;

/// Errors of NAT44 configuration.
#[derive(Debug, thiserror::Error)]
pub enum NatError {
    /// Interface error.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No memory for sessions.
    #[error(transparent)]
    Memory(#[from] MapError),
    /// The object exists already.
    #[error("{0} exists already")]
    Exists(String),
    /// The object does not exist.
    #[error("there is no {0}")]
    Missing(String),
    /// A file or socket cannot be opened.
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    /// Invalid argument.
    #[error("{0}")]
    Invalid(String),
}

/// A pool address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Address {
    /// True if it is for twice-NAT.
    pub twice: bool,
    /// The address.
    pub address: Ipv4Addr,
    /// Routing table of the hosts that may use it; `None` for all.
    pub table: Option<TableId>,
}

/// A static mapping as configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaticMapping {
    /// The mapping. Its external address is not valid with `external_if`.
    pub mapping: Mapping,
    /// The interface whose first address is the external address.
    pub external_if: Option<SwIfIndex>,
    /// True if it is an identity mapping.
    pub identity: bool,
    /// The user's word for it; empty for none.
    pub tag: String,
}

/// NAT44 on the main thread.
pub struct Nat44 {
    /// Maximum number of sessions per worker; `None` while NAT44 is disabled.
    sessions: Option<u32>,
    default_vrfs: DefaultVrfs,
    addresses: BTreeSet<Address>,
    /// Interfaces whose addresses are used as pool addresses, and whether for twice-NAT.
    address_interfaces: BTreeSet<(SwIfIndex, bool)>,
    /// Pools for the hosts of each table, and of all tables, by number.
    pool_tables: BTreeMap<Option<TableId>, usize>,
    /// Addresses of interfaces that are used.
    borrowed: Borrowed,
    roles: BTreeMap<SwIfIndex, Role>,
    /// Number of outside interfaces that translate on input, and on output.
    outsides: [usize; 2],
    timeouts: Timeouts,
    forwarding: bool,
    mss: u16,
    scheme: Scheme,
    /// True if new sessions are refused when the table is full.
    refuse: bool,
    /// Session limits by routing table, for all workers together.
    limits: BTreeMap<TableId, u32>,
    per_host: u32,
    /// Routes between tables in the order in which they are tried, by table of the host.
    vrfs: BTreeMap<TableId, Vec<TableId>>,
    /// Workers that own sessions; empty = all.
    owners: Vec<u16>,
    log: Option<Log>,
    /// The last IPFIX collector, and its rate in records per second.
    collector: Option<(Target, u32)>,
    /// File that sessions are saved to, and the interval in seconds.
    saving: Option<(PathBuf, u32)>,
    /// Nothing else is written to that file.
    saving_to: Option<Reserved>,
    /// Number of changes of `saving`.
    saving_turn: u64,
    /// Saved sessions that have no place yet.
    pub(crate) waiting: Waiting,
    /// Static mappings by number, in the order in which they were added.
    mappings: BTreeMap<u64, StaticMapping>,
    /// Their numbers by external endpoint.
    by_external: BTreeMap<Claim, u64>,
    /// The mappings that workers have.
    index: Index,
    /// Hosts that were assigned to workers by port.
    formerly_by_port: Hosts,
    /// Counts of each worker for an index when its last interface went.
    counted_before: BTreeMap<SwIfIndex, Vec<[u64; COUNT]>>,
    writer: snapshot::Writer<Config>,
    /// Addresses and reserved ports as sent to workers.
    active: BTreeSet<Address>,
    reserved: BTreeSet<Port>,
    /// Addresses that ARP answers for.
    answering: lent::Answering,
}

impl Nat44 {
    pub(crate) fn new(writer: snapshot::Writer<Config>) -> Nat44 {
        Nat44 {
            sessions: None,
            default_vrfs: DefaultVrfs::default(),
            addresses: BTreeSet::new(),
            address_interfaces: BTreeSet::new(),
            pool_tables: BTreeMap::new(),
            borrowed: Borrowed::default(),
            roles: BTreeMap::new(),
            outsides: [0; 2],
            timeouts: Timeouts::default(),
            forwarding: false,
            mss: 0,
            scheme: Scheme::All,
            refuse: false,
            limits: BTreeMap::new(),
            per_host: 0,
            vrfs: BTreeMap::new(),
            owners: Vec::new(),
            log: None,
            collector: None,
            saving: None,
            saving_to: None,
            saving_turn: 0,
            waiting: Waiting::default(),
            mappings: BTreeMap::new(),
            by_external: BTreeMap::new(),
            index: Index::default(),
            formerly_by_port: Hosts::default(),
            counted_before: BTreeMap::new(),
            writer,
            active: BTreeSet::new(),
            reserved: BTreeSet::new(),
            answering: lent::Answering::default(),
        }
    }

    /// Maximum number of sessions per worker; `None` while NAT44 is disabled.
    pub fn sessions(&self) -> Option<u32> {
        self.sessions
    }
    /// Default routing tables.
    pub fn default_vrfs(&self) -> DefaultVrfs {
        self.default_vrfs
    }
    /// Pool addresses as configured.
    pub fn addresses(&self) -> &BTreeSet<Address> {
        &self.addresses
    }
    /// All pool addresses in use, including those of interfaces.
    pub fn all_addresses(&self) -> &BTreeSet<Address> {
        &self.active
    }
    /// Interfaces whose addresses are used as pool addresses, and whether for twice-NAT.
    pub fn address_interfaces(&self) -> &BTreeSet<(SwIfIndex, bool)> {
        &self.address_interfaces
    }
    /// Roles by interface.
    pub fn roles(&self) -> &BTreeMap<SwIfIndex, Role> {
        &self.roles
    }
    /// Session timeouts.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }
    /// Returns whether packets from outside without a session are forwarded.
    pub fn forwarding(&self) -> bool {
        self.forwarding
    }
    /// MSS limit for SYNs; 0 = none.
    pub fn mss(&self) -> u16 {
        self.mss
    }
    /// Port assignment.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }
    /// Returns whether new sessions are refused when the table is full, instead of recycling
    /// half-open ones.
    pub fn refuses(&self) -> bool {
        self.refuse
    }
    /// Session limits by routing table.
    pub fn limits(&self) -> &BTreeMap<TableId, u32> {
        &self.limits
    }
    /// Session limit per host; 0 = none.
    pub fn per_host(&self) -> u32 {
        self.per_host
    }
    /// Routes between tables in the order in which they are tried, by table of the host. Hosts of
    /// tables that are not listed reach all tables with an outside interface.
    pub fn vrfs(&self) -> &BTreeMap<TableId, Vec<TableId>> {
        &self.vrfs
    }
    /// Workers that own sessions, as configured; empty = all.
    pub fn named_owners(&self) -> &[u16] {
        &self.owners
    }
    /// Workers that own sessions, of `workers`, in the order of their shares of ports.
    pub fn owners(&self, workers: usize) -> Vec<usize> {
        match &self.owners[..] {
            [] => (0..workers).collect(),
            named => named.iter().map(|w| usize::from(*w)).collect(),
        }
    }
    /// The session log, if enabled.
    pub fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }
    /// The right to write to that file, as long as sessions are saved there.
    pub(crate) fn saving_lease(&self) -> Option<Lease> {
        self.saving_to.as_ref().map(Reserved::lease)
    }
    /// The reservation of that file, which another setting with the same file takes over.
    pub(crate) fn take_saving_to(&mut self, file: &Path) -> Option<Reserved> {
        let is_same = self.saving.as_ref().is_some_and(|(now, _)| now == file);
        if is_same { self.saving_to.take() } else { None }
    }
    /// File that sessions are saved to, and the interval in seconds.
    pub fn saving(&self) -> Option<&(PathBuf, u32)> {
        self.saving.as_ref()
    }
    pub(crate) fn saving_turn(&self) -> u64 {
        self.saving_turn
    }
    /// Sets where sessions are saved. Returns the number of the change.
    pub(crate) fn set_saving(
        &mut self,
        to: Option<(PathBuf, u32)>,
        reserved: Option<Reserved>,
    ) -> u64 {
        (self.saving, self.saving_to) = (to, reserved);
        self.saving_turn += 1;
        self.saving_turn
    }
    /// The configuration as workers read it.
    pub(crate) fn config(&self) -> &Config {
        self.writer.get()
    }
    /// Static mappings.
    pub fn mappings(&self) -> impl Iterator<Item = &StaticMapping> {
        self.mappings.values()
    }
}

fn order(c: &mut Control, make: impl FnMut(usize) -> Order) {
    let mut make = make;
    if let Some(node) = c.node("nat44-ed-ticker") {
        c.message_all(node, |worker| Box::new(make(worker)));
    }
}

fn order_one(c: &mut Control, worker: usize, what: Order) {
    if let Some(node) = c.node("nat44-ed-ticker") {
        c.message(worker, node, Box::new(what));
    }
}

/// Enables NAT44 with a maximum number of sessions per worker and default routing tables.
///
/// # Errors
/// [`NatError::Exists`] if it is enabled with other values; [`NatError::Memory`].
pub fn enable(
    c: &mut Control,
    sessions: Option<u32>,
    vrfs: Option<DefaultVrfs>,
) -> Result<(), NatError> {
    let nat = c.state::<Nat44>();
    if let Some(vrfs) = vrfs {
        check_table(vrfs.inside)?;
        check_table(vrfs.outside)?;
        let now = nat.borrow().default_vrfs;
        if nat.borrow().sessions.is_some() && vrfs != now {
            let DefaultVrfs { inside, outside } = now;
            let what = format!("nat44 with inside-vrf {inside} outside-vrf {outside}");
            return Err(NatError::Exists(format!("{what} (disable it to have others)")));
        }
    }
    if let Some(now) = nat.borrow().sessions {
        return match sessions {
            Some(n) if n != now => {
                let now = thalweg_cli::counted(now.into(), "session");
                let what = format!("nat44 with {now} (disable it to have {n})");
                Err(NatError::Exists(what))
            }
            _ => Ok(()),
        };
    }
    let sessions = sessions.unwrap_or(SESSIONS).clamp(1, MAX_SESSIONS);
    let now = time::millis(clock::ticks());
    let mut tables =
        (0..c.workers()).map(|_| Nat::new(sessions, now)).collect::<Result<Vec<_>, _>>()?;
    tables.iter_mut().for_each(|nat| nat.prepare());
    let mut tables = tables.into_iter();
    let mut spare = Vec::new();
    order(c, |_| match tables.next() {
        Some(nat) => Order::Start(nat),
        None => Order::Stop,
    });
    spare.extend(tables);
    {
        let mut nat = nat.borrow_mut();
        nat.sessions = Some(sessions);
        nat.default_vrfs = vrfs.unwrap_or_default();
        nat.active.clear();
        nat.reserved.clear();
    }
    // Sessions must exist before the first packet.
    c.when_synced(publish);
    Ok(())
}

/// Enables NAT44 with defaults, as the first command of the family does.
///
/// # Errors
/// [`NatError::Memory`].
pub fn ensure(c: &mut Control) -> Result<(), NatError> {
    enable(c, None, None)
}

/// Disables NAT44, and removes its configuration and sessions.
pub fn disable(c: &mut Control) {
    let nat = c.state::<Nat44>();
    let roles: Vec<SwIfIndex> = nat.borrow().roles.keys().copied().collect();
    for sw_if in roles {
        set_role(c, sw_if, Role::default());
    }
    {
        let mut nat = nat.borrow_mut();
        nat.sessions = None;
        nat.default_vrfs = DefaultVrfs::default();
        nat.addresses.clear();
        nat.address_interfaces.clear();
        nat.pool_tables.clear();
        nat.borrowed = Borrowed::default();
        nat.mappings.clear();
        nat.by_external.clear();
        nat.index = Index::default();
        nat.formerly_by_port.clear();
        nat.timeouts = Timeouts::default();
        (nat.forwarding, nat.mss, nat.scheme) = (false, 0, Scheme::All);
        nat.limits.clear();
        nat.vrfs.clear();
        nat.owners.clear();
        nat.collector = None;
        (nat.refuse, nat.per_host) = (false, 0);
        nat.set_saving(None, None);
        nat.waiting = Waiting::default();
        if let Some(log) = nat.log.take() {
            // With it goes the name of its file.
            log.end();
        }
        nat.active.clear();
        nat.reserved.clear();
    }
    order(c, |_| Order::Stop);
    publish_none(c);
}

fn check_table(table: TableId) -> Result<(), NatError> {
    if table > TableId(MAX_TABLE) {
        let text = format!("table {table} is too large: nat44 supports tables up to {MAX_TABLE}");
        return Err(NatError::Invalid(text));
    }
    Ok(())
}

/// Adds or deletes a role of an interface.
///
/// # Errors
/// [`NatError`].
pub fn set_interface(
    c: &mut Control,
    sw_if: SwIfIndex,
    inside: bool,
    output: bool,
    add: bool,
) -> Result<(), NatError> {
    let name = interface::view(c, sw_if)?.name;
    let table = c.state::<Ip4>().borrow().table_of(sw_if);
    check_table(table)?;
    ensure(c)?;
    let nat = c.state::<Nat44>();
    let old = nat.borrow().roles.get(&sw_if).copied().unwrap_or_default();
    let mut new = old;
    let which = if inside { &mut new.inside } else { &mut new.outside };
    let side = if inside { "in" } else { "out" };
    if add && (old.inside || old.outside) && old.output != output {
        let text = format!(
            "`{name}` has a role with another setting of `output-feature` already; delete that first"
        );
        return Err(NatError::Invalid(text));
    }
    if !add && !*which {
        return Err(NatError::Missing(format!("nat44 `{side}` on `{name}`")));
    }
    *which = add;
    new.output = output && (new.inside || new.outside);
    set_role(c, sw_if, new);
    publish_role(c, sw_if);
    Ok(())
}

/// Ends all sessions.
pub fn clear_sessions(c: &mut Control) {
    c.state::<Nat44>().borrow_mut().waiting = Waiting::default();
    order(c, |_| Order::Sweep(Sweep::All));
}

/// Subscribes to deleted interfaces and changed addresses.
pub(crate) fn follow_interfaces(c: &mut Control) {
    c.subscribe(|c, e| {
        let gone = match *e {
            InterfaceEvent::Created(new) => return greet(c, new),
            InterfaceEvent::Deleted(gone) => gone,
            _ => return,
        };
        let nat = c.state::<Nat44>();
        let counted = raw_counts(c, gone);
        if counted.iter().flatten().any(|n| *n > 0) {
            nat.borrow_mut().counted_before.insert(gone, counted);
        }
        order(c, |_| Order::Gone(gone));
        if nat.borrow().roles.contains_key(&gone) {
            set_role(c, gone, Role::default());
            publish_role(c, gone);
        }
        if !nat.borrow().borrowed.uses(gone) {
            return;
        }
        let numbers = nat.borrow().borrowed.mappings(gone);
        for number in &numbers {
            nat.borrow_mut().take_mapping(*number);
        }
        let change = forget_lender(c, gone);
        publish_change(c, &Change { mappings: numbers, ..change });
    });
    c.subscribe(|c, &InterfaceTableChanged { version, sw_if }: &InterfaceTableChanged| {
        // The tables of roles decide which interfaces answer for external addresses.
        if version == Version::V4 && c.state::<Nat44>().borrow().roles.contains_key(&sw_if) {
            lent::follow_role(c, sw_if);
        }
    });
    c.subscribe(|c, &AddressesChanged { version, sw_if }: &AddressesChanged| {
        let uses = c.state::<Nat44>().borrow().borrowed.uses(sw_if);
        if version == Version::V4 && uses {
            let change = borrow_again(c, sw_if);
            publish_change(c, &change);
            order(c, |_| Order::Sweep(Sweep::Mappings));
        }
    });
}

fn raw_counts(c: &Control, sw_if: SwIfIndex) -> Vec<[u64; COUNT]> {
    let counters = c.shared::<Counters>();
    (0..c.workers()).map(|worker| counters.read(worker, sw_if)).collect()
}

/// Returns each worker's counts for an interface, in the order of
/// [`NAMES`](crate::counters::NAMES).
pub fn counts(c: &Control, sw_if: SwIfIndex) -> Vec<[u64; COUNT]> {
    let mut counts = raw_counts(c, sw_if);
    let nat = c.state::<Nat44>();
    let nat = nat.borrow();
    if let Some(before) = nat.counted_before.get(&sw_if) {
        for (n, before) in counts.iter_mut().flatten().zip(before.iter().flatten()) {
            *n = n.wrapping_sub(*before);
        }
    }
    counts
}

/// Name of a protocol.
pub fn protocol_name(number: u8) -> String {
    match number {
        protocol::TCP => "TCP".into(),
        protocol::UDP => "UDP".into(),
        protocol::ICMP => "ICMP".into(),
        _ => number.to_string(),
    }
}
