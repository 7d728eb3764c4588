//! The NAT44 configuration on the main thread.

use crate::config::{Addresses, Config, INSIDE, OUTPUT, OUTSIDE, Timeouts};
use crate::counters::{COUNT, Counters};
use crate::log::{Log, Target};
use crate::mapping::{Hosts, Index, Mapping, Mappings};
use crate::nodes::nat44_ed_ticker::Order;
use crate::pool::Pool;
use crate::ports::Scheme;
use crate::time;
use crate::worker::{Nat, Sweep};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use thalweg_device::{DeviceError, InterfaceEvent, SwIfIndex, interface};
use thalweg_feat_ip::{AddressesChanged, InterfaceTableChanged, Ip4, Version};
use thalweg_fib::TableId;
use thalweg_graph::{Control, clock};
use thalweg_tables::MapError;
use thalweg_tables::snapshot;
use thalweg_wire::ip::protocol;
use thalweg_wire::nat::tuple::MAX_TABLE;

mod lent;
mod roles;
mod statics;
mod tuning;
mod vrf;

use roles::set_role;
pub use roles::{Role, RolesChanged};
use statics::External;
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
    /// Whether it is for twice-NAT.
    pub twice: bool,
    /// The address.
    pub address: Ipv4Addr,
    /// Only for hosts of this routing table.
    pub table: Option<TableId>,
}

/// A static mapping as configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaticMapping {
    /// The mapping. Its external address is not valid with `external_if`.
    pub mapping: Mapping,
    /// The interface whose first address is the external address.
    pub external_if: Option<SwIfIndex>,
    /// Whether it is an identity mapping.
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
    roles: BTreeMap<SwIfIndex, Role>,
    timeouts: Timeouts,
    forwarding: bool,
    mss: u16,
    scheme: Scheme,
    /// Whether new sessions are refused when the table is full.
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
    /// Number of changes of `saving`.
    saving_turn: u64,
    /// Static mappings by number, in the order in which they were added.
    mappings: BTreeMap<u64, StaticMapping>,
    /// Their numbers by external endpoint.
    by_external: HashMap<External, Vec<u64>>,
    /// The mappings that workers have.
    index: Index,
    /// Hosts assigned to workers by port, now and formerly.
    by_port: Hosts,
    formerly_by_port: Hosts,
    /// What each worker had counted for an index when its last interface went.
    counted_before: BTreeMap<SwIfIndex, Vec<[u64; COUNT]>>,
    writer: snapshot::Writer<Config>,
    /// Addresses and reserved ports as sent to workers.
    active: BTreeSet<Address>,
    reserved: BTreeSet<(u32, u8, u16)>,
}

impl Nat44 {
    pub(crate) fn new(writer: snapshot::Writer<Config>) -> Nat44 {
        Nat44 {
            sessions: None,
            default_vrfs: DefaultVrfs::default(),
            addresses: BTreeSet::new(),
            address_interfaces: BTreeSet::new(),
            roles: BTreeMap::new(),
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
            saving_turn: 0,
            mappings: BTreeMap::new(),
            by_external: HashMap::new(),
            index: Index::default(),
            by_port: Hosts::default(),
            formerly_by_port: Hosts::default(),
            counted_before: BTreeMap::new(),
            writer,
            active: BTreeSet::new(),
            reserved: BTreeSet::new(),
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
    /// File that sessions are saved to, and the interval in seconds.
    pub fn saving(&self) -> Option<&(PathBuf, u32)> {
        self.saving.as_ref()
    }
    pub(crate) fn saving_turn(&self) -> u64 {
        self.saving_turn
    }
    /// Sets where sessions are saved. Returns the number of the change.
    pub(crate) fn set_saving(&mut self, to: Option<(PathBuf, u32)>) -> u64 {
        self.saving = to;
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
        nat.mappings.clear();
        nat.by_external.clear();
        nat.timeouts = Timeouts::default();
        (nat.forwarding, nat.mss, nat.scheme) = (false, 0, Scheme::All);
        nat.limits.clear();
        nat.vrfs.clear();
        nat.owners.clear();
        nat.collector = None;
        (nat.refuse, nat.per_host) = (false, 0);
        nat.set_saving(None);
        if let Some(log) = nat.log.take() {
            log.end();
        }
        nat.active.clear();
        nat.reserved.clear();
    }
    order(c, |_| Order::Stop);
    publish(c);
    c.state::<Nat44>().borrow_mut().formerly_by_port.clear();
}

fn check_table(table: TableId) -> Result<(), NatError> {
    if table > TableId(MAX_TABLE) {
        let text = format!("table {table} is too large: nat44 supports tables up to {MAX_TABLE}");
        return Err(NatError::Invalid(text));
    }
    Ok(())
}

/// Adds the pool addresses `first` to `last`, or deletes them with their sessions.
///
/// # Errors
/// [`NatError`]; nothing is changed then.
pub fn set_addresses(
    c: &mut Control,
    (first, last): (Ipv4Addr, Ipv4Addr),
    table: Option<TableId>,
    twice: bool,
    add: bool,
) -> Result<(), NatError> {
    check_table(table.unwrap_or(TableId(0)))?;
    if last < first {
        return Err(NatError::Invalid(format!("{last} is below {first}")));
    }
    if first.is_unspecified() || first.is_multicast() || last.is_multicast() || last.is_broadcast()
    {
        return Err(NatError::Invalid(format!("{first} - {last} are not unicast addresses")));
    }
    ensure(c)?;
    let nat = c.state::<Nat44>();
    let count = (last.to_bits() - first.to_bits()) as usize + 1;
    if add && table.is_some() {
        let (ip4, nat) = (c.state::<Ip4>(), nat.borrow());
        let ip4 = ip4.borrow();
        let lent = nat.address_interfaces.iter().filter(|b| b.1 == twice);
        let mut lent =
            lent.flat_map(|b| ip4.addresses(b.0).iter().map(|a| Ipv4Addr::from_bits(a.addr)));
        if let Some(wrong) = lent.find(|a| (first..=last).contains(a)) {
            return Err(NatError::Exists(format!("pool address {wrong} of an interface")));
        }
    }
    {
        let mut nat = nat.borrow_mut();
        if add && nat.addresses.len() + count > MAX_ADDRESSES {
            let text = format!(
                "the limit of {MAX_ADDRESSES} pool addresses is reached; `nat44 add address ... del` frees some"
            );
            return Err(NatError::Invalid(text));
        }
        let all = (first.to_bits()..=last.to_bits()).map(Ipv4Addr::from);
        let there =
            |a: &Ipv4Addr| nat.addresses.iter().any(|x| x.address == *a && x.twice == twice);
        if let Some(wrong) = all.clone().find(|a| there(a) == add) {
            let what = format!("address {wrong}");
            return Err(if add { NatError::Exists(what) } else { NatError::Missing(what) });
        }
        for address in all {
            if add {
                nat.addresses.insert(Address { twice, address, table });
            } else {
                nat.addresses.retain(|x| x.address != address || x.twice != twice);
            }
        }
    }
    publish(c);
    Ok(())
}

/// Uses the addresses of an interface as pool addresses, or stops doing so.
///
/// # Errors
/// [`NatError`].
pub fn set_interface_address(
    c: &mut Control,
    sw_if: SwIfIndex,
    twice: bool,
    add: bool,
) -> Result<(), NatError> {
    let name = interface::view(c, sw_if)?.name;
    ensure(c)?;
    let nat = c.state::<Nat44>();
    {
        let mut nat = nat.borrow_mut();
        let words = if twice { " with twice-nat" } else { "" };
        let what = || format!("use of addresses of `{name}`{words}");
        match (nat.address_interfaces.contains(&(sw_if, twice)), add) {
            (true, true) => return Err(NatError::Exists(what())),
            (false, false) => return Err(NatError::Missing(what())),
            (false, true) => {
                let ip4 = c.state::<Ip4>();
                let ip4 = ip4.borrow();
                let is_lent =
                    |a: &Ipv4Addr| ip4.addresses(sw_if).iter().any(|lent| lent.addr == a.to_bits());
                let kept = |a: &&Address| a.twice == twice && a.table.is_some();
                let kept = nat.addresses.iter().filter(kept).find(|a| is_lent(&a.address));
                if let Some(Address { address, table: Some(table), .. }) = kept {
                    return Err(NatError::Exists(format!("address {address} tenant-vrf {table}")));
                }
                nat.address_interfaces.insert((sw_if, twice));
            }
            (true, false) => drop(nat.address_interfaces.remove(&(sw_if, twice))),
        }
    }
    publish(c);
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
    publish(c);
    Ok(())
}

/// Ends all sessions.
pub fn clear_sessions(c: &mut Control) {
    order(c, |_| Order::Sweep(Sweep::All));
}

/// Publishes the configuration to workers.
fn publish(c: &mut Control) {
    let nat = c.state::<Nat44>();
    let (mut config, addresses, kept) = {
        let nat = nat.borrow();
        let ip4 = c.state::<Ip4>();
        let ip4 = ip4.borrow();
        let first =
            |sw_if: SwIfIndex| ip4.addresses(sw_if).first().map(|a| Ipv4Addr::from_bits(a.addr));
        let mut addresses = nat.addresses.clone();
        for (sw_if, twice) in &nat.address_interfaces {
            let lent = ip4.addresses(*sw_if).iter().map(|a| Address {
                twice: *twice,
                address: Ipv4Addr::from_bits(a.addr),
                table: None,
            });
            // A duplicate would assign its ports twice; the configured address takes precedence.
            let said = |l: &Address| {
                nat.addresses.iter().any(|a| (a.twice, a.address) == (l.twice, l.address))
            };
            addresses.extend(lent.filter(|l| !said(l)));
        }
        let resolve = |(number, m): (&u64, &StaticMapping)| {
            let mut mapping = m.mapping.clone();
            if let Some(sw_if) = m.external_if {
                mapping.external = first(sw_if)?;
                if m.identity {
                    mapping.local = mapping.external;
                }
            }
            Some((*number, mapping))
        };
        let mut config = config(&nat, &addresses);
        let mut index = Index::default();
        let mut kept = BTreeSet::new();
        for (number, mapping) in nat.mappings.iter().filter_map(resolve) {
            kept.extend(mapping.port_key());
            config.addresses.map(&mapping);
            let is_pooled = config.pooled.contains(&mapping.external.to_bits());
            index.add(number, mapping, is_pooled);
        }
        config.mappings = index.all().clone();
        drop(nat);
        c.state::<Nat44>().borrow_mut().index = index;
        (config, addresses, kept)
    };
    let (old, was_kept, on, scheme, owners) = {
        let nat = nat.borrow();
        let owners = nat.owners(c.workers());
        (nat.active.clone(), nat.reserved.clone(), nat.sessions.is_some(), nat.scheme, owners)
    };
    let gone: Vec<Address> = old.difference(&addresses).copied().collect();
    for a in gone {
        order(c, |_| Order::Drop { address: a.address.to_bits(), twice: a.twice });
    }
    let come: Vec<Address> = addresses.difference(&old).copied().collect();
    for a in come.iter().filter(|_| on) {
        for (part, worker) in owners.iter().enumerate() {
            let part = (part, owners.len());
            let pool = Pool::new(a.address.to_bits(), a.table, a.twice, scheme, part);
            order_one(c, *worker, Order::Add(Box::new(pool)));
        }
    }
    let reserve = |&(address, protocol, port): &(u32, u8, u16), keep| {
        move |_| Order::Reserve { address, protocol, port, keep }
    };
    for k in was_kept.difference(&kept) {
        order(c, reserve(k, false));
    }
    let new = |k: &&(u32, u8, u16)| {
        !was_kept.contains(k) || come.iter().any(|a| a.address.to_bits() == k.0)
    };
    for k in kept.iter().filter(new) {
        order(c, reserve(k, true));
    }
    let lent = lent::of(&nat.borrow(), &c.state::<Ip4>().borrow(), &config, &addresses);
    {
        let mut nat = nat.borrow_mut();
        (nat.active, nat.reserved) = (addresses, kept);
        config.formerly_by_port = nat.note_hosts_by_port(config.mappings.hosts_by_port());
        nat.writer.publish(c.domain(), config);
    }
    thalweg_feat_arp::answer_for(c, lent);
}

/// The configuration as workers read it, without static mappings.
fn config(nat: &Nat44, addresses: &BTreeSet<Address>) -> Config {
    let top = nat.roles.keys().max().map_or(0, |m| m.index() + 1);
    let mut roles = vec![0; top];
    for (sw_if, role) in &nat.roles {
        let bit = |bit: u8, is: bool| if is { bit } else { 0 };
        roles[sw_if.index()] =
            bit(INSIDE, role.inside) | bit(OUTSIDE, role.outside) | bit(OUTPUT, role.output);
    }
    let own = addresses.iter().map(|a| a.address.to_bits()).collect();
    let kind = |twice| addresses.iter().filter(move |a| a.twice == twice);
    let [pooled, twice] =
        [false, true].map(|twice| kind(twice).map(|a| a.address.to_bits()).collect());
    let addresses = Addresses { pooled: own, ..Addresses::default() };
    let of_interfaces = nat.address_interfaces.iter().filter(|b| !b.1).map(|_| None);
    let pools = nat.addresses.iter().filter(|a| !a.twice).map(|a| a.table);
    let pools: Vec<Option<TableId>> = pools.chain(of_interfaces).collect();
    let with_role = |output: bool| {
        let outside = nat.roles.iter().filter(move |(_, r)| r.outside && r.output == output);
        outside.map(|(sw_if, _)| *sw_if)
    };
    Config {
        roles,
        addresses,
        mappings: Mappings::default(),
        formerly_by_port: Hosts::default(),
        pooled,
        pool_for_all: pools.contains(&None),
        pool_tables: pools.into_iter().flatten().map(|table| table.get()).collect(),
        twice,
        timeouts: nat.timeouts.by_class(),
        forwarding: nat.forwarding,
        mss: nat.mss,
        scheme: nat.scheme,
        refuse: nat.refuse,
        vrfs: nat.vrfs.clone(),
        owners: nat.owners.clone(),
        outside_vrf: Some(nat.default_vrfs.outside).filter(|table| *table != TableId(0)),
        outsides: with_role(false).collect(),
        any_output: with_role(true).next().is_some(),
    }
}

impl Nat44 {
    /// Returns whether the configuration names an interface.
    fn uses(&self, sw_if: SwIfIndex) -> bool {
        self.roles.contains_key(&sw_if) || self.takes_address_of(sw_if)
    }

    /// Returns whether external addresses are those of this interface.
    fn takes_address_of(&self, sw_if: SwIfIndex) -> bool {
        self.address_interfaces.iter().any(|b| b.0 == sw_if)
            || self.by_external.keys().any(|key| key.1 == Some(sw_if))
    }
}

/// Subscribes to deleted interfaces and changed addresses.
pub(crate) fn follow_interfaces(c: &mut Control) {
    c.subscribe(|c, e| {
        let InterfaceEvent::Deleted(gone) = *e else { return };
        let nat = c.state::<Nat44>();
        let counted = raw_counts(c, gone);
        if counted.iter().flatten().any(|n| *n > 0) {
            nat.borrow_mut().counted_before.insert(gone, counted);
        }
        order(c, |_| Order::Gone(gone));
        if !nat.borrow().uses(gone) {
            return;
        }
        set_role(c, gone, Role::default());
        {
            let mut nat = nat.borrow_mut();
            nat.address_interfaces.retain(|b| b.0 != gone);
            nat.mappings.retain(|_, m| m.external_if != Some(gone));
            nat.by_external.retain(|key, _| key.1 != Some(gone));
        }
        publish(c);
    });
    c.subscribe(|c, &InterfaceTableChanged { version, sw_if }: &InterfaceTableChanged| {
        // Where external addresses are answered for depends on the tables of roles.
        if version == Version::V4 && c.state::<Nat44>().borrow().roles.contains_key(&sw_if) {
            publish(c);
        }
    });
    c.subscribe(|c, &AddressesChanged { version, sw_if }: &AddressesChanged| {
        if version != Version::V4 {
            return;
        }
        let nat = c.state::<Nat44>();
        let uses = nat.borrow().takes_address_of(sw_if);
        if uses {
            publish(c);
            order(c, |_| Order::Sweep(Sweep::Mappings));
        }
    });
}

fn raw_counts(c: &Control, sw_if: SwIfIndex) -> Vec<[u64; COUNT]> {
    let counters = c.shared::<Counters>();
    (0..c.workers()).map(|worker| counters.read(worker, sw_if)).collect()
}

/// What each worker has counted for an interface, in the order of
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
