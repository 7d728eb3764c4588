//! What workers read of the configuration.

use crate::mapping::{FastHash, Hosts, Mappings};
use crate::ports::Scheme;
use crate::session::Class;
use crate::worker;
use std::collections::{BTreeMap, HashSet};
use std::net::Ipv4Addr;
use thalweg_tables::flow::Millis;

/// An interface's hosts are translated when they send.
pub const INSIDE: u8 = 1;
/// Behind an interface hosts are seen translated.
pub const OUTSIDE: u8 = 2;

/// Seconds that sessions live without packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// UDP and all other protocols that have no timeout of their own.
    pub udp: u32,
    /// TCP connections that stand.
    pub tcp_established: u32,
    /// TCP connections that come up or go down.
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
    /// Longest that may be set, in seconds.
    pub const MAX: u32 = 1_000_000;

    /// In milliseconds, by the number of the class.
    pub fn by_class(&self) -> [Millis; 4] {
        Class::ALL.map(|class| self.of(class) * 1000)
    }

    /// Seconds of a class.
    pub fn of(&self, class: Class) -> u32 {
        match class {
            Class::Udp => self.udp,
            Class::TcpEstablished => self.tcp_established,
            Class::TcpTransitory => self.tcp_transitory,
            Class::Icmp => self.icmp,
        }
    }
}

/// The configuration as workers read it.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// What each interface is.
    pub(crate) roles: Vec<u8>,
    /// Addresses that stand for hosts inside: of pools, and of static mappings.
    pub(crate) addresses: HashSet<u32, FastHash>,
    /// Those of them of which hosts inside get ports.
    pub(crate) pooled: HashSet<u32, FastHash>,
    /// Addresses of which hosts outside get ports.
    pub(crate) twice: HashSet<u32, FastHash>,
    /// Static mappings.
    pub(crate) mappings: Mappings,
    /// Hosts that had the name of a shared address once: what they began then is where ports said.
    pub(crate) formerly_by_port: Hosts,
    /// Milliseconds by class.
    pub(crate) timeouts: [Millis; 4],
    /// Packets from the outside that belong to no session are let pass.
    pub(crate) forwarding: bool,
    /// Largest segment that SYNs may announce; 0: any.
    pub(crate) mss: u16,
    /// When the table is full, what is new is refused, and nothing half open makes room.
    pub(crate) refuse: bool,
    /// SessionFilter ports are given away.
    pub(crate) scheme: Scheme,
    /// Tables whose hosts reach the tables that are named, in this order, and no others.
    pub(crate) vrfs: BTreeMap<u32, Vec<u32>>,
    /// The table that is tried before theirs.
    pub(crate) outside_vrf: Option<u32>,
    /// Interfaces outside, in the order of their numbers.
    pub(crate) outsides: Vec<u32>,
    /// Workers that have sessions; none named: all of them.
    pub(crate) owners: Vec<u16>,
}

impl Config {
    /// The worker of so many that a host inside belongs to.
    pub(crate) fn owner(&self, host: Ipv4Addr, workers: usize) -> usize {
        match self.owners.len() {
            0 => worker::owner(host, workers),
            n => usize::from(self.owners[worker::owner(host, n)]),
        }
    }

    /// The worker of so many that gives a port away.
    pub(crate) fn owner_of_port(&self, port: u16, workers: usize) -> Option<usize> {
        match self.owners.len() {
            0 => self.scheme.owner(port, workers),
            n => self.scheme.owner(port, n).map(|at| usize::from(self.owners[at])),
        }
    }

    /// What an interface is.
    #[inline]
    pub(crate) fn role(&self, sw_if: u32) -> u8 {
        self.roles.get(sw_if as usize).copied().unwrap_or(0)
    }
}
