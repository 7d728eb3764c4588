//! The main thread's side of forwarding objects.

use crate::dpo::{Dpo, DpoTable, EntryState, Kind, MAX_BUCKETS};
use crate::routes::RouteBook;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use thalweg_device::{InterfaceEvent, InterfaceView, Interfaces, Mac, SwIfIndex, interface};
use thalweg_graph::Control;
use thalweg_tables::IndexPool;

/// Maximum number of entries of all kinds.
const CAPACITY: usize = 1 << 20;

/// Error of creating a forwarding object.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FibError {
    /// There are no entries left.
    #[error("adjacency table full: {0} entries are the limit")]
    Full(usize),
    /// The interface does not exist.
    #[error("no interface with index {0}")]
    NoInterface(SwIfIndex),
    /// A load balance has no members or too many.
    #[error("a route takes 1 to {MAX_BUCKETS} paths, not {0}")]
    Members(usize),
}

/// An adjacency as `show` commands see it.
#[derive(Clone, Debug)]
pub struct Adjacency {
    /// Its index.
    pub dpo: Dpo,
    /// Number of routes and neighbours that use it.
    pub refs: u32,
    /// The neighbour's MAC address, if known.
    pub mac: Option<Mac>,
}

#[derive(Clone, Debug)]
struct Balance {
    members: Vec<(Dpo, u32)>,
    base: u32,
    log2: u8,
    refs: u32,
}

/// Reference counts and owners of entries.
pub struct Forwarding {
    table: Arc<DpoTable>,
    pool: IndexPool,
    bucket_pools: BTreeMap<u8, Vec<u32>>,
    next_bucket: u32,
    adjacencies: HashMap<(SwIfIndex, IpAddr), Adjacency>,
    gleans: HashMap<SwIfIndex, (Dpo, u32)>,
    /// Entries of deleted interfaces that are still in use, with their reference counts: a new
    /// interface of the same index must not find them.
    orphans: HashMap<Dpo, u32>,
    owners: HashMap<Dpo, (SwIfIndex, Option<IpAddr>)>,
    balances: HashMap<Dpo, Balance>,
    interned: HashMap<Vec<(Dpo, u32)>, Dpo>,
}

/// Entry of "the router's own address".
pub const LOCAL: Dpo = 1;
/// Entry of "drop silently".
pub const DROP: Dpo = 2;
/// Entry of "unreachable".
pub const UNREACHABLE: Dpo = 3;
/// Entry of "prohibited".
pub const PROHIBIT: Dpo = 4;

impl Forwarding {
    #[expect(clippy::panic, reason = "the router cannot start without this memory")]
    pub(crate) fn init(c: &mut Control) {
        // Reserving address space fails only if the process is out of it; nothing works then.
        let table = match DpoTable::new(CAPACITY) {
            Ok(t) => Arc::new(t),
            Err(e) => panic!("cannot reserve the adjacency table: {e}"),
        };
        c.share(table.clone());
        c.share(Arc::new(RouteBook::default()));
        let mut f = Forwarding {
            table,
            pool: IndexPool::new(CAPACITY as u32),
            bucket_pools: BTreeMap::new(),
            next_bucket: 0,
            adjacencies: HashMap::new(),
            gleans: HashMap::new(),
            orphans: HashMap::new(),
            owners: HashMap::new(),
            balances: HashMap::new(),
            interned: HashMap::new(),
        };
        for kind in [Kind::Miss, Kind::Local, Kind::Drop, Kind::Unreachable, Kind::Prohibit] {
            // The first entries have fixed indices.
            if let Ok(i) = f.pool.alloc(c.domain()) {
                f.table.get(i).set_state(EntryState { kind, len: 0, mtu: u16::MAX, tx_if: 0 });
            }
        }
        c.insert(f);
        c.state::<Interfaces>().borrow_mut().subscribe(|c, e| {
            let (InterfaceEvent::Created(i)
            | InterfaceEvent::State(i)
            | InterfaceEvent::Mac(i)
            | InterfaceEvent::Mtu(i)
            | InterfaceEvent::Deleted(i)) = e;
            let view = interface::view(c, i).ok().filter(|_| e != InterfaceEvent::Deleted(i));
            c.state::<Forwarding>().borrow_mut().interface_changed(i, view.as_ref());
        });
    }

    /// Returns the table that workers read.
    pub fn table(&self) -> &Arc<DpoTable> {
        &self.table
    }

    fn alloc(&mut self, c: &Control) -> Result<Dpo, FibError> {
        self.pool.alloc(c.domain()).map_err(|_| FibError::Full(CAPACITY))
    }

    fn free(&mut self, c: &Control, dpo: Dpo) {
        self.owners.remove(&dpo);
        let _ = self.pool.free_after(dpo, c.domain().tag());
    }

    /// Returns the adjacency of a neighbour, created if needed; the caller holds a reference until
    /// [`release`](Self::release).
    ///
    /// # Errors
    /// If the interface does not exist or the table is full.
    pub fn adjacency(
        &mut self,
        c: &Control,
        sw_if: SwIfIndex,
        nh: IpAddr,
    ) -> Result<Dpo, FibError> {
        if let Some(a) = self.adjacencies.get_mut(&(sw_if, nh)) {
            a.refs += 1;
            return Ok(a.dpo);
        }
        let view = interface::view(c, sw_if).map_err(|_| FibError::NoInterface(sw_if))?;
        let dpo = self.alloc(c)?;
        self.adjacencies.insert((sw_if, nh), Adjacency { dpo, refs: 1, mac: None });
        self.owners.insert(dpo, (sw_if, Some(nh)));
        self.write(dpo, &view, nh, None);
        Ok(dpo)
    }

    /// Returns the glean object of a connected subnet, with a reference as for an adjacency.
    ///
    /// # Errors
    /// See [`adjacency`](Self::adjacency).
    pub fn glean(&mut self, c: &Control, sw_if: SwIfIndex) -> Result<Dpo, FibError> {
        if let Some((dpo, refs)) = self.gleans.get_mut(&sw_if) {
            *refs += 1;
            return Ok(*dpo);
        }
        let view = interface::view(c, sw_if).map_err(|_| FibError::NoInterface(sw_if))?;
        let dpo = self.alloc(c)?;
        self.gleans.insert(sw_if, (dpo, 1));
        self.owners.insert(dpo, (sw_if, None));
        self.write_glean(dpo, &view);
        Ok(dpo)
    }

    /// Returns one entry over several members with weights; a single member is returned itself.
    /// Takes over the caller's references to the members: release the result only.
    ///
    /// # Errors
    /// If there are no or too many members, or the table is full; the members are released then.
    pub fn balance(&mut self, c: &Control, mut members: Vec<(Dpo, u32)>) -> Result<Dpo, FibError> {
        members.sort_unstable();
        if members.is_empty() || members.len() > MAX_BUCKETS {
            let n = members.len();
            self.release_all(c, &members);
            return Err(FibError::Members(n));
        }
        if members.len() == 1 {
            return Ok(members[0].0);
        }
        if let Some(&dpo) = self.interned.get(&members) {
            // One set of references is enough.
            self.release_all(c, &members);
            if let Some(b) = self.balances.get_mut(&dpo) {
                b.refs += 1;
            }
            return Ok(dpo);
        }
        let total: u32 = members.iter().map(|m| m.1.max(1)).sum();
        let log2 = total.next_power_of_two().trailing_zeros().clamp(1, MAX_BUCKETS.ilog2()) as u8;
        // Weights such as 1:2 do not fill a power of two evenly: use more buckets than needed.
        let log2 = (log2 + 2).min(MAX_BUCKETS.ilog2() as u8);
        let dpo = match self.alloc(c) {
            Ok(d) => d,
            Err(e) => {
                self.release_all(c, &members);
                return Err(e);
            }
        };
        let base = self.bucket_pools.get_mut(&log2).and_then(Vec::pop).unwrap_or_else(|| {
            let base = self.next_bucket;
            self.next_bucket += 1 << log2;
            base
        });
        self.interned.insert(members.clone(), dpo);
        self.balances.insert(dpo, Balance { members, base, log2, refs: 1 });
        self.fill(dpo);
        let e = self.table.get(dpo);
        e.set_next(base);
        e.set_state(EntryState { kind: Kind::LoadBalance, len: log2, mtu: u16::MAX, tx_if: 0 });
        Ok(dpo)
    }

    fn release_all(&mut self, c: &Control, members: &[(Dpo, u32)]) {
        for (m, _) in members {
            self.release(c, *m);
        }
    }

    /// Distributes a balance's buckets over its usable members.
    fn fill(&mut self, dpo: Dpo) {
        let Some(b) = self.balances.get(&dpo) else { return };
        let usable = |m: &&(Dpo, u32)| self.table.get(m.0).state().kind != Kind::Down;
        let mut live: Vec<(Dpo, u32)> = b.members.iter().filter(usable).copied().collect();
        if live.is_empty() {
            live.clone_from(&b.members);
        }
        let total: u64 = live.iter().map(|m| u64::from(m.1.max(1))).sum();
        let n = 1u64 << b.log2;
        let mut edge = 0u64;
        let mut slot = 0u64;
        for (i, (member, weight)) in live.iter().enumerate() {
            edge += u64::from((*weight).max(1));
            let end = if i + 1 == live.len() { n } else { (edge * n + total / 2) / total };
            while slot < end {
                self.table.set_bucket(b.base + slot as u32, *member);
                slot += 1;
            }
        }
    }

    /// Releases a reference to an entry; the last one frees it (after a grace period).
    pub fn release(&mut self, c: &Control, dpo: Dpo) {
        if let Some(b) = self.balances.get_mut(&dpo) {
            b.refs -= 1;
            if b.refs > 0 {
                return;
            }
            if let Some(b) = self.balances.remove(&dpo) {
                self.interned.remove(&b.members);
                self.release_all(c, &b.members);
                self.free(c, dpo);
                // The buckets may be read until the grace period ends; at worst, a stale reader
                // finds another load balance's members, which are valid entries.
                self.bucket_pools.entry(b.log2).or_default().push(b.base);
            }
            return;
        }
        if let Some(refs) = self.orphans.get_mut(&dpo) {
            *refs -= 1;
            if *refs == 0 {
                self.orphans.remove(&dpo);
                self.free(c, dpo);
            }
            return;
        }
        match self.owners.get(&dpo).copied() {
            Some((sw_if, Some(nh))) => {
                if let Some(a) = self.adjacencies.get_mut(&(sw_if, nh)) {
                    a.refs -= 1;
                    if a.refs == 0 {
                        self.adjacencies.remove(&(sw_if, nh));
                        self.free(c, dpo);
                    }
                }
            }
            Some((sw_if, None)) => {
                if let Some((_, refs)) = self.gleans.get_mut(&sw_if) {
                    *refs -= 1;
                    if *refs == 0 {
                        self.gleans.remove(&sw_if);
                        self.free(c, dpo);
                    }
                }
            }
            None => {}
        }
    }

    /// Sets a neighbour's MAC address: its adjacency, if there is one, becomes complete or
    /// incomplete in place.
    pub fn set_neighbor(&mut self, c: &Control, sw_if: SwIfIndex, nh: IpAddr, mac: Option<Mac>) {
        let Ok(view) = interface::view(c, sw_if) else { return };
        let Some(a) = self.adjacencies.get_mut(&(sw_if, nh)) else { return };
        a.mac = mac;
        let dpo = a.dpo;
        self.write(dpo, &view, nh, mac);
    }

    /// Writes an adjacency's entry: the header first, then the state that makes it valid.
    fn write(&self, dpo: Dpo, view: &InterfaceView, nh: IpAddr, mac: Option<Mac>) {
        let e = self.table.get(dpo);
        e.set_next_hop(Some(nh));
        e.set_next(u32::from(view.output.0));
        let mtu = view.ip4_mtu().min(u32::from(u16::MAX)) as u16;
        let ethertype: [u8; 2] = if nh.is_ipv4() { [0x08, 0x00] } else { [0x86, 0xdd] };
        let (kind, len) = match (view.is_up(), view.ethernet, mac) {
            (false, _, _) => (Kind::Down, 0),
            (true, false, _) => (Kind::Rewrite, 0),
            (true, true, None) => (Kind::Incomplete, 0),
            (true, true, Some(mac)) => {
                let mut header = [0; 14];
                header[..6].copy_from_slice(&mac);
                header[6..12].copy_from_slice(&view.mac);
                header[12..].copy_from_slice(&ethertype);
                e.set_rewrite(&header);
                (Kind::Rewrite, 14)
            }
        };
        e.set_state(EntryState { kind, len, mtu, tx_if: view.sw_if });
    }

    fn write_glean(&self, dpo: Dpo, view: &InterfaceView) {
        let e = self.table.get(dpo);
        e.set_next_hop(None);
        e.set_next(u32::from(view.output.0));
        let kind = match (view.is_up(), view.ethernet) {
            (false, _) => Kind::Down,
            (true, true) => Kind::Glean,
            // No resolution: whatever is at the other end receives it.
            (true, false) => Kind::Rewrite,
        };
        let mtu = view.ip4_mtu().min(u32::from(u16::MAX)) as u16;
        e.set_state(EntryState { kind, len: 0, mtu, tx_if: view.sw_if });
    }

    /// Updates the adjacencies of an interface: up, down, another MAC address or MTU, deleted
    /// (`None`).
    fn interface_changed(&mut self, sw_if: SwIfIndex, view: Option<&InterfaceView>) {
        let mine: Vec<(Dpo, IpAddr, Option<Mac>)> = self
            .adjacencies
            .iter()
            .filter(|((i, _), _)| *i == sw_if)
            .map(|((_, nh), a)| (a.dpo, *nh, a.mac))
            .collect();
        let down = EntryState { kind: Kind::Down, len: 0, mtu: 0, tx_if: 0 };
        for (dpo, nh, mac) in &mine {
            match view {
                Some(v) => self.write(*dpo, v, *nh, *mac),
                None => self.table.get(*dpo).set_state(down),
            }
        }
        if let Some((dpo, _)) = self.gleans.get(&sw_if) {
            match view {
                Some(v) => self.write_glean(*dpo, v),
                None => self.table.get(*dpo).set_state(down),
            }
        }
        let touched: Vec<Dpo> = self
            .balances
            .iter()
            .filter(|(_, b)| b.members.iter().any(|(m, _)| mine.iter().any(|(d, _, _)| d == m)))
            .map(|(d, _)| *d)
            .collect();
        for dpo in touched {
            self.fill(dpo);
        }
        if view.is_none() {
            let adjacencies = self.adjacencies.extract_if(|(i, _), _| *i == sw_if);
            self.orphans.extend(adjacencies.map(|(_, a)| (a.dpo, a.refs)));
            self.orphans.extend(self.gleans.remove(&sw_if));
        }
    }

    /// Returns the neighbour or interface of an entry.
    pub fn owner(&self, dpo: Dpo) -> Option<(SwIfIndex, Option<IpAddr>)> {
        self.owners.get(&dpo).copied()
    }

    /// Returns a neighbour's adjacency, if there is one.
    pub fn find(&self, sw_if: SwIfIndex, nh: IpAddr) -> Option<&Adjacency> {
        self.adjacencies.get(&(sw_if, nh))
    }

    /// Returns the members of a load balance with their weights; the entry itself for anything
    /// else.
    pub fn members(&self, dpo: Dpo) -> Vec<(Dpo, u32)> {
        self.balances.get(&dpo).map_or_else(|| vec![(dpo, 1)], |b| b.members.clone())
    }

    /// Returns the number of entries in use.
    pub fn len(&self) -> usize {
        self.pool.len()
    }

    /// Returns false: the special entries always exist.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Describes an entry, as `show ip fib` prints it.
    pub fn describe(&self, c: &Control, dpo: Dpo) -> String {
        let s = self.table.get(dpo).state();
        let name = c.interface_name(s.tx_if);
        match (s.kind, self.owner(dpo)) {
            (Kind::Rewrite | Kind::Incomplete, Some((_, Some(nh)))) => {
                let bytes = &self.table.get(dpo).rewrite()[..usize::from(s.len)];
                let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                let state = if s.kind == Kind::Rewrite { "ipv4 via" } else { "arp-ipv4: via" };
                format!("{state} {nh} {name}: mtu:{} {hex}", s.mtu)
            }
            (Kind::Glean, _) => format!("ipv4-glean: {name}: mtu:{}", s.mtu),
            (Kind::Down, Some((i, Some(nh)))) => {
                format!("dpo-drop: via {nh} {}: interface down", c.interface_name(i))
            }
            (Kind::Down, Some((i, None))) => {
                format!("dpo-drop: {}: interface down", c.interface_name(i))
            }
            (Kind::Local, _) => "dpo-receive".into(),
            (Kind::Unreachable, _) => "dpo-unreachable".into(),
            (Kind::Prohibit, _) => "dpo-prohibit".into(),
            _ => "dpo-drop".into(),
        }
    }
}
