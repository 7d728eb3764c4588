//! IPv6 as workers read it: the table of each interface.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use thalweg_buffer::Frame;
use thalweg_device::SwIfIndex;
use thalweg_feat_nd::IfAddrs;
use thalweg_fib::forwarding::LOCAL;
use thalweg_fib::{Dpo, DpoTable, Routes, TableId};
use thalweg_tables::qsbr::Guard;
use thalweg_tables::snapshot::Snapshot;
use thalweg_tables::{CowTable, Lpm6Reader};

/// A table as workers read it.
#[derive(Clone, Debug)]
pub struct Fib {
    /// Table id.
    pub(crate) id: TableId,
    /// Distinguishes it from an earlier table with the same id.
    pub(crate) serial: u32,
    /// Its routes.
    pub(crate) routes: Lpm6Reader,
    /// True if ICMP errors answer packets without a route.
    pub(crate) unreachables: bool,
}

/// The first interface of a table with an address, and that address: the source of the router's
/// errors by interfaces without an address of their own.
pub(crate) type Member = (SwIfIndex, Ipv6Addr);

/// All tables and interfaces, republished when an interface's address or table changes; routes
/// change in place.
#[derive(Clone)]
pub struct Tables {
    /// Shared with the tables of a moment ago unless one has come or gone.
    pub(crate) fibs: Arc<[Fib]>,
    /// Index of the interfaces' tables in `fibs`.
    pub(crate) interfaces: CowTable<u16>,
    /// A member of each table, by its place.
    pub(crate) members: CowTable<Option<Member>>,
}

impl Tables {
    #[inline]
    fn interface(&self, rx_if: SwIfIndex) -> usize {
        self.interfaces.get(rx_if).map_or(0, |fib| usize::from(*fib))
    }
    /// Table id of an interface.
    #[inline]
    pub fn fib_id(&self, rx_if: SwIfIndex) -> TableId {
        self.fib(rx_if).map_or(TableId(0), |f| f.id)
    }
    /// Table of an interface.
    #[inline]
    pub fn fib(&self, rx_if: SwIfIndex) -> Option<&Fib> {
        self.fibs.get(self.interface(rx_if))
    }
    /// Table of all packets of a frame, if they share one.
    #[inline(never)]
    pub(crate) fn fib_of_all(&self, frame: &Frame) -> Option<Option<&Fib>> {
        let first = self.interface(frame.rx_if(0));
        let one = self.fibs.len() == 1;
        let same = one || frame.rx_runs().all(|(rx_if, _)| self.interface(rx_if) == first);
        same.then(|| self.fibs.get(first))
    }
    /// Returns the interface by which what a tunnel brings into a table is treated as received.
    #[must_use]
    pub fn member(&self, table: TableId) -> Option<SwIfIndex> {
        let at = self.fibs.iter().position(|fib| fib.id == table)?;
        self.members.get(at as u32)?.map(|(sw_if, _)| sw_if)
    }
    /// Returns what the route of an address in an interface's table leads to.
    #[must_use]
    pub fn leaf(&self, rx_if: SwIfIndex, address: u128) -> Dpo {
        self.fib(rx_if).map_or(Dpo(0), |fib| Dpo(fib.routes.lookup(address)))
    }
    /// Source of the router's errors by interfaces without an address of their own.
    #[must_use]
    pub fn source(&self, rx_if: SwIfIndex) -> Option<Ipv6Addr> {
        self.members.get(self.interface(rx_if) as u32)?.map(|(_, source)| source)
    }
    /// Table with an id.
    pub(crate) fn fib_of(&self, id: TableId) -> Option<&Fib> {
        self.fibs.iter().find(|fib| fib.id == id)
    }
}

/// Looks up prefix lengths of routes for other features.
pub(crate) struct Lengths {
    pub(crate) tables: Arc<Snapshot<Tables>>,
    pub(crate) dpos: Arc<DpoTable>,
    pub(crate) addrs: Arc<Snapshot<IfAddrs>>,
}

impl Routes for Lengths {
    fn prefix_len(&self, guard: &Guard<'_>, rx_if: SwIfIndex, address: IpAddr) -> Option<u8> {
        let IpAddr::V6(v6) = address else { return None };
        let fib = self.tables.load(guard).fib(rx_if)?;
        let (leaf, len) = fib.routes.lookup_route(v6.to_bits())?;
        // A neighbour's own route is how the router gets there; its network is that of the subnet.
        let entry = self.dpos.get(Dpo(leaf));
        let is_neighbor = len == 128 && entry.state().kind.is_sent();
        let subnet = (is_neighbor && entry.next_hop() == Some(address))
            .then(|| self.addrs.load(guard).connected_len(entry.state().tx_if(), v6));
        Some(subnet.flatten().unwrap_or(len))
    }

    // The table of an interface, and whether an address is the router's, are asked for by ARP only.
    fn table(&self, _: &Guard<'_>, _: SwIfIndex) -> Option<u32> {
        None
    }

    fn is_local(&self, guard: &Guard<'_>, rx_if: SwIfIndex, address: IpAddr) -> bool {
        let (IpAddr::V6(v6), Some(fib)) = (address, self.tables.load(guard).fib(rx_if)) else {
            return false;
        };
        self.dpos.resolve(Dpo(fib.routes.lookup(v6.to_bits())), || 0) == LOCAL
    }
}
