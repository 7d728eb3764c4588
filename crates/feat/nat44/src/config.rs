//! The configuration in the form that workers read.

use crate::mapping::{Hosts, Mapping, Mappings};
use crate::ports::Scheme;
use crate::session::Class;
use crate::worker;
use std::collections::{BTreeMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_device::SwIfIndex;
use thalweg_fib::TableId;
use thalweg_tables::CowMap;
use thalweg_tables::flow::Millis;
use thalweg_tables::hash::FastHash;
use thalweg_wire::nat::tuple::Tuple;

/// Role: packets received on the interface are from inside hosts.
pub const INSIDE: u8 = 1;
/// Role: packets received on the interface are from outside.
pub const OUTSIDE: u8 = 2;
/// Role: packets to the outside are translated on output (`output-feature`).
pub const OUTPUT: u8 = 4;

/// Session timeouts in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// UDP and all other protocols without a timeout of their own.
    pub udp: u32,
    /// Established TCP connections.
    pub tcp_established: u32,
    /// TCP connections during setup and teardown.
    pub tcp_transitory: u32,
    /// ICMP queries.
    pub icmp: u32,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { udp: 300, tcp_established: 7440, tcp_transitory: 240, icmp: 60 }
    }
}

impl Timeouts {
    /// Maximum in seconds.
    pub const MAX: u32 = 1_000_000;

    /// Returns the timeouts in milliseconds, by class number.
    pub fn by_class(&self) -> [Millis; 4] {
        Class::ALL.map(|class| self.of(class) * 1000)
    }

    /// The timeout of a class in seconds.
    pub fn of(&self, class: Class) -> u32 {
        match class {
            Class::Udp => self.udp,
            Class::TcpEstablished => self.tcp_established,
            Class::TcpTransitory => self.tcp_transitory,
            Class::Icmp => self.icmp,
        }
    }
}

/// Addresses that decide where a packet is looked up. A copy shares those of static mappings, which
/// may be many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    /// Addresses of pools.
    pub(crate) pooled: HashSet<u32, FastHash>,
    /// Addresses of static mappings, with the number of mappings.
    pub(crate) mapped: CowMap<u32, u32, FastHash>,
    /// Addresses that mappings leave to their hosts, with the number of mappings. They are no
    /// external addresses, but answers to their hosts may need translation.
    pub(crate) kept: CowMap<u32, u32, FastHash>,
}

impl Addresses {
    /// Returns whether an address is external.
    #[inline(always)]
    pub(crate) fn contains(&self, address: &u32) -> bool {
        self.pooled.contains(address)
            || !self.mapped.is_empty() && self.mapped.contains_key(address)
    }

    /// Returns whether an inside host may call another one by an address, or answer a host that
    /// did so from it.
    #[inline(always)]
    pub(crate) fn may_hairpin(&self, address: &u32) -> bool {
        self.contains(address) || !self.kept.is_empty() && self.kept.contains_key(address)
    }

    /// Adds the external address of a mapping.
    pub(crate) fn map(&mut self, mapping: &Mapping) {
        self.of(mapping).change(mapping.external.to_bits(), |mappings| *mappings += 1);
    }

    /// Removes the external address of a mapping.
    pub(crate) fn unmap(&mut self, mapping: &Mapping) {
        let address = mapping.external.to_bits();
        let all = self.of(mapping);
        match all.get(&address) {
            None => {}
            Some(1) => drop(all.remove(&address)),
            Some(_) => all.change(address, |mappings| *mappings -= 1),
        }
    }

    fn of(&mut self, mapping: &Mapping) -> &mut CowMap<u32, u32, FastHash> {
        if mapping.takes_address() { &mut self.mapped } else { &mut self.kept }
    }
}

/// The configuration in the form that workers read.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Roles by interface.
    pub(crate) roles: Vec<u8>,
    /// External addresses, of pools and of static mappings.
    pub(crate) addresses: Addresses,
    /// The addresses of pools that inside hosts share.
    pub(crate) pooled: HashSet<u32, FastHash>,
    /// True if there is a pool for the hosts of all routing tables, and the tables with a pool of
    /// their own. The pool of an interface counts even while that has no address.
    pub(crate) pool_for_all: bool,
    pub(crate) pool_tables: HashSet<u32, FastHash>,
    /// The addresses of twice-NAT pools.
    pub(crate) twice: HashSet<u32, FastHash>,
    /// Static mappings.
    pub(crate) mappings: Mappings,
    /// Hosts that were assigned to workers by [`Rule::Port`](crate::owners::Rule::Port) before:
    /// their sessions of that time stay where they are.
    pub(crate) formerly_by_port: Hosts,
    /// Timeouts in milliseconds, by class.
    pub(crate) timeouts: [Millis; 4],
    /// True if packets from outside without a session are forwarded.
    pub(crate) forwarding: bool,
    /// MSS limit for SYNs; 0 = none.
    pub(crate) mss: u16,
    /// True if new sessions are refused when the table is full, instead of recycling half-open
    /// ones.
    pub(crate) refuse: bool,
    /// Port assignment.
    pub(crate) scheme: Scheme,
    /// Routes between tables, tried in this order; by table of the host.
    pub(crate) vrfs: Arc<BTreeMap<TableId, Vec<TableId>>>,
    /// The table that is tried before those of outside interfaces.
    pub(crate) outside_vrf: Option<TableId>,
    /// Outside interfaces whose packets are translated on input, in ascending order.
    pub(crate) outsides: Vec<SwIfIndex>,
    /// True if there is an outside interface with translation on output.
    pub(crate) any_output: bool,
    /// Workers that own sessions; empty = all workers.
    pub(crate) owners: Vec<u16>,
}

impl Config {
    /// Returns whether outside hosts may call an address: that of a pool or of a mapping.
    pub(crate) fn is_external(&self, address: u32) -> bool {
        self.pooled.contains(&address) || self.addresses.mapped.contains_key(&address)
    }

    /// Adds a pool address, for twice-NAT or not.
    pub(crate) fn add_pool(&mut self, address: u32, twice: bool) {
        if twice { &mut self.twice } else { &mut self.pooled }.insert(address);
        self.addresses.pooled.insert(address);
    }

    /// Removes a pool address. Another one may have the same address for twice-NAT.
    pub(crate) fn drop_pool(&mut self, address: u32, twice: bool) {
        if twice { &mut self.twice } else { &mut self.pooled }.remove(&address);
        if !self.pooled.contains(&address) && !self.twice.contains(&address) {
            self.addresses.pooled.remove(&address);
        }
    }

    /// Sets the role of an interface, 0 for none.
    pub(crate) fn set_role(&mut self, sw_if: SwIfIndex, role: u8) {
        let at = sw_if.index();
        if at >= self.roles.len() {
            self.roles.resize(at + 1, 0);
        }
        self.roles[at] = role;
        let is_outside = role & (OUTSIDE | OUTPUT) == OUTSIDE;
        match (self.outsides.binary_search(&sw_if), is_outside) {
            (Err(at), true) => self.outsides.insert(at, sw_if),
            (Ok(at), false) => drop(self.outsides.remove(at)),
            _ => {}
        }
    }

    /// Sets whether a table has a pool of its own.
    pub(crate) fn set_pool_table(&mut self, table: TableId, has: bool) {
        _ = match has {
            true => self.pool_tables.insert(table.get()),
            false => self.pool_tables.remove(&table.get()),
        };
    }

    /// The worker, of `workers`, that an inside host belongs to.
    pub(crate) fn owner(&self, host: Ipv4Addr, workers: usize) -> usize {
        match self.owners.len() {
            0 => worker::owner(host, workers),
            n => usize::from(self.owners[worker::owner(host, n)]),
        }
    }

    /// The worker, of `workers`, that assigns a port.
    pub(crate) fn owner_of_port(&self, port: u16, workers: usize) -> Option<usize> {
        match self.owners.len() {
            0 => self.scheme.owner(port, workers),
            n => self.scheme.owner(port, n).map(|at| usize::from(self.owners[at])),
        }
    }

    /// Returns whether packets to the outside by this interface are translated on output.
    pub(crate) fn is_output(&self, sw_if: SwIfIndex) -> bool {
        self.role(sw_if) & (OUTSIDE | OUTPUT) == OUTSIDE | OUTPUT
    }

    /// Returns whether packets of an inside endpoint that no session knows are forwarded as they
    /// are: forwarding is on, and there is no mapping for it. Packets that leave by an interface
    /// with translation on output (`on_output`) are translated nowhere else: there, a pool counts
    /// as well.
    pub(crate) fn leaves_alone(&self, inside: &Tuple, on_output: bool) -> bool {
        let Tuple { src, sport, protocol, table, .. } = *inside;
        let has_pool = || self.pool_for_all || self.pool_tables.contains(&table);
        self.forwarding
            && !(on_output && has_pool())
            && self.mappings.of_host(src.to_bits(), sport, protocol, TableId(table)).is_none()
    }

    /// Role of an interface.
    #[inline]
    pub(crate) fn role(&self, sw_if: SwIfIndex) -> u8 {
        self.roles.get(sw_if.index()).copied().unwrap_or(0)
    }
}
