//! IPv4 as workers read it: the table of each interface, and its source address.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use thalweg_buffer::Frame;
use thalweg_device::SwIfIndex;
use thalweg_feat_arp::IfAddrs;
use thalweg_feat_ip::lookup::MAX_LOOKUPS;
use thalweg_fib::forwarding::LOCAL;
use thalweg_fib::{Dpo, DpoTable, EntryState, Kind, MAX_BUCKETS, Routes, TableId};
use thalweg_tables::qsbr::Guard;
use thalweg_tables::snapshot::Snapshot;
use thalweg_tables::{CowTable, Lpm4Reader};

/// A table as workers read it.
#[derive(Clone, Debug)]
pub struct Fib {
    /// Table id.
    pub(crate) id: TableId,
    /// Distinguishes it from an earlier table with the same id.
    pub(crate) serial: u32,
    /// Its routes.
    pub(crate) routes: Lpm4Reader,
    /// True if ICMP errors answer packets without a route.
    pub(crate) unreachables: bool,
}

/// One interface.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IfIp4 {
    /// Index of its table in [`Tables::fibs`].
    pub(crate) fib: u16,
    /// Its first address.
    pub(crate) address: Option<Ipv4Addr>,
}

/// All tables and interfaces, republished when an interface's address or table changes; routes
/// change in place.
#[derive(Clone)]
pub struct Tables {
    /// Shared with the tables of a moment ago unless one has come or gone.
    pub(crate) fibs: Arc<[Fib]>,
    /// Rows by interface. Interfaces without an address are in the first table, unless they say
    /// otherwise.
    pub(crate) interfaces: CowTable<IfIp4>,
    /// The first interface with an address in each table, by its place.
    pub(crate) members: CowTable<Option<SwIfIndex>>,
}

impl Tables {
    #[inline]
    fn interface(&self, rx_if: SwIfIndex) -> IfIp4 {
        self.interfaces.get(rx_if).copied().unwrap_or_default()
    }
    /// Returns whether table 0 is the only one.
    #[inline]
    pub fn is_single(&self) -> bool {
        self.fibs.len() == 1
    }
    /// Returns what the route of an address in an interface's table leads to.
    #[must_use]
    pub fn leaf(&self, rx_if: SwIfIndex, address: u32) -> Dpo {
        self.fib(rx_if).map_or(Dpo(0), |fib| Dpo(fib.routes.lookup(address)))
    }
    /// Table id of an interface.
    #[inline]
    pub fn fib_id(&self, rx_if: SwIfIndex) -> TableId {
        self.fib(rx_if).map_or(TableId(0), |f| f.id)
    }
    /// Ids of all tables.
    pub fn ids(&self) -> impl Iterator<Item = TableId> + Clone + '_ {
        self.fibs.iter().map(|fib| fib.id)
    }
    /// Table of an interface.
    #[inline]
    pub fn fib(&self, rx_if: SwIfIndex) -> Option<&Fib> {
        self.fibs.get(usize::from(self.interface(rx_if).fib))
    }
    /// Table of all packets of a frame, if they share one.
    #[inline(never)]
    pub(crate) fn fib_of_all(&self, frame: &Frame) -> Option<Option<&Fib>> {
        let of = |rx_if| self.interface(rx_if).fib;
        let first = of(frame.rx_if(0));
        let same = self.is_single() || frame.rx_runs().all(|(rx_if, _)| of(rx_if) == first);
        same.then(|| self.fibs.get(usize::from(first)))
    }
    /// Resolves a destination for packets received on an interface; of a load balance, its first
    /// member.
    pub fn resolve(&self, dpos: &DpoTable, rx_if: SwIfIndex, to: u32) -> EntryState {
        self.follow(dpos, self.fib(rx_if), to)
    }
    /// Resolves a destination in the table with this id; a miss if the table does not exist.
    pub fn resolve_in(&self, dpos: &DpoTable, table: TableId, to: u32) -> EntryState {
        self.follow(dpos, self.fib_of(table), to)
    }
    /// Resolves a destination in the table with this id: of several paths, the first that `is`
    /// holds for, or else the first one.
    pub fn resolve_any(
        &self,
        dpos: &DpoTable,
        table: u32,
        to: u32,
        is: impl Fn(EntryState) -> bool,
    ) -> EntryState {
        let first = self.resolve_in(dpos, TableId(table), to);
        if is(first) {
            return first;
        }
        let others = (1..MAX_BUCKETS as u32).map_while(|hash| {
            let mut is_group = false;
            let state = self.follow_by(dpos, self.fib_of(TableId(table)), to, || {
                is_group = true;
                hash
            });
            is_group.then_some(state)
        });
        others.into_iter().find(|state| is(*state)).unwrap_or(first)
    }
    /// Table with an id.
    pub(crate) fn fib_of(&self, id: TableId) -> Option<&Fib> {
        self.fibs.iter().find(|fib| fib.id == id)
    }
    fn follow(&self, dpos: &DpoTable, fib: Option<&Fib>, to: u32) -> EntryState {
        self.follow_by(dpos, fib, to, || 0)
    }
    /// [`resolve_in`](Self::resolve_in) for packets with a hash, which is asked for if it matters.
    fn follow_by(
        &self,
        dpos: &DpoTable,
        fib: Option<&Fib>,
        to: u32,
        mut hash: impl FnMut() -> u32,
    ) -> EntryState {
        dpos.get(self.end_of(dpos, fib, to, &mut hash)).state()
    }
    /// The object that packets to a destination end at.
    fn end_of(
        &self,
        dpos: &DpoTable,
        fib: Option<&Fib>,
        to: u32,
        mut hash: impl FnMut() -> u32,
    ) -> Dpo {
        let mut look = |fib: Option<&Fib>| {
            let leaf = fib.map_or(0, |fib| fib.routes.lookup(to));
            dpos.resolve(Dpo(leaf), &mut hash)
        };
        let mut dpo = look(fib);
        for _ in 0..MAX_LOOKUPS {
            let state = dpos.get(dpo).state();
            dpo = match state.kind {
                Kind::LOOKUP => look(self.fib_of(TableId(state.value))),
                Kind::INTERFACE_RX => look(self.fib(state.tx_if())),
                _ => break,
            };
        }
        dpo
    }
    /// Returns whether an address may be that of a host, for packets received on an interface: no
    /// multicast address, and no broadcast address, of whatever link. A packet from another one is
    /// answered by nothing (RFC 1122 section 3.2.1.3, RFC 1812 section 5.3.4).
    #[must_use]
    pub fn is_host(&self, dpos: &DpoTable, rx_if: SwIfIndex, address: Ipv4Addr) -> bool {
        let to_group = || {
            let dpo = self.end_of(dpos, self.fib(rx_if), address.to_bits(), || 0);
            let entry = dpos.get(dpo);
            let kind = entry.state().kind;
            kind == Kind::MULTICAST || kind == Kind::REWRITE && entry.rewrite()[0] & 1 != 0
        };
        !thalweg_wire::ipv4::is_martian_source(address) && !to_group()
    }
    /// Returns the interface by which what a tunnel brings into a table is treated as received.
    #[must_use]
    pub fn member(&self, table: TableId) -> Option<SwIfIndex> {
        let at = self.fibs.iter().position(|fib| fib.id == table)?;
        *self.members.get(at as u32)?
    }
    /// Source address of the router's messages on an interface.
    #[inline]
    pub fn address(&self, rx_if: SwIfIndex) -> Option<Ipv4Addr> {
        self.interface(rx_if).address
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
        let IpAddr::V4(v4) = address else { return None };
        let fib = self.tables.load(guard).fib(rx_if)?;
        let (leaf, len) = fib.routes.lookup_route(v4.to_bits())?;
        // A neighbour's own route is how the router gets there; its network is that of the subnet.
        let entry = self.dpos.get(Dpo(leaf.get()));
        let is_neighbor = len == 32 && entry.state().kind.is_sent();
        let subnet = (is_neighbor && entry.next_hop() == Some(address))
            .then(|| self.addrs.load(guard).connected_len(entry.state().tx_if(), v4));
        Some(subnet.flatten().unwrap_or(len))
    }

    fn table(&self, guard: &Guard<'_>, rx_if: SwIfIndex) -> Option<u32> {
        Some(self.tables.load(guard).fib_id(rx_if).get())
    }

    fn is_local(&self, guard: &Guard<'_>, rx_if: SwIfIndex, address: IpAddr) -> bool {
        let (IpAddr::V4(v4), Some(fib)) = (address, self.tables.load(guard).fib(rx_if)) else {
            return false;
        };
        self.dpos.resolve(Dpo(fib.routes.lookup(v4.to_bits())), || 0) == LOCAL
    }
}
