//! Pools of external addresses that inside hosts share.

use crate::ports::{Ports, Scheme};
use crate::worker::owner;
use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use thalweg_fib::TableId;
use thalweg_tables::hash::FastHash;
use thalweg_wire::ip::{has_ports, protocol};

/// Number of port spaces of an address: those of TCP, of UDP and of ICMP, whose identifiers count
/// as ports, and one that all other protocols with ports share.
pub const SPACES: usize = 4;

/// Index of the port space of a protocol; `None` if it has no ports.
#[inline]
pub fn position(ip: u8) -> Option<usize> {
    match ip {
        protocol::TCP => Some(0),
        protocol::UDP => Some(1),
        protocol::ICMP => Some(2),
        _ if has_ports(ip) => Some(SPACES - 1),
        _ => None,
    }
}

/// An external address with a worker's share of its ports.
#[derive(Debug)]
pub struct Pool {
    /// The address.
    pub address: u32,
    /// The routing table whose hosts may use it; `None` = all.
    pub table: Option<TableId>,
    /// True if it is for twice-NAT.
    pub twice: bool,
    /// False once it is removed and its sessions are ending.
    pub live: bool,
    /// Number of sessions that use it.
    pub used: u32,
    /// Ports by [`position`].
    pub ports: [Ports; SPACES],
}

impl Pool {
    /// The share of an address that worker `worker` of `workers` gets.
    pub fn new(
        address: u32,
        table: Option<TableId>,
        twice: bool,
        scheme: Scheme,
        (worker, workers): (usize, usize),
    ) -> Pool {
        let share = scheme.share(worker, workers);
        let ports = std::array::from_fn(|_| Ports::new(scheme, share));
        Pool { address, table, twice, live: true, used: 0, ports }
    }
}

/// Addresses for the same hosts, in the order of addition.
#[derive(Debug)]
struct Group {
    table: Option<TableId>,
    twice: bool,
    members: Vec<u16>,
    /// True, by protocol, if all ports are in use, as far as known.
    spent: [bool; SPACES],
}

impl Group {
    /// The place among the members of the address that a host uses.
    ///
    /// VPP divides the host's address, read as a little-endian number, by the number of pool
    /// addresses, and counts from the one before if the pool is for all tables. We do the same for
    /// an odd number of addresses. With an even one, hosts of one network would share half of the
    /// addresses or fewer, of sixteen a single one; we spread them by a hash.
    fn place_of(&self, host: Ipv4Addr) -> usize {
        let n = self.members.len();
        if n.is_multiple_of(2) || self.twice {
            return owner(host, n);
        }
        let at = host.to_bits().swap_bytes() as usize % n;
        if self.table.is_some() { at } else { (at + n - 1) % n }
    }
}

/// The addresses of a worker.
#[derive(Debug, Default)]
pub struct Pools {
    all: Vec<Pool>,
    groups: Vec<Group>,
    /// Indices of addresses in use, and whether for twice-NAT.
    live: HashMap<(u32, bool), u16, FastHash>,
    /// Indices of removed addresses.
    removed: BTreeSet<u16>,
}

impl Pools {
    /// All addresses, including those being removed.
    pub fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.all.iter()
    }

    /// The address at an index.
    pub fn get(&self, at: u16) -> Option<&Pool> {
        self.all.get(usize::from(at))
    }

    /// The address at an index, as in packets.
    pub fn address(&self, at: u16) -> Ipv4Addr {
        self.get(at).map_or(Ipv4Addr::UNSPECIFIED, |p| p.address.into())
    }

    /// Adds an address, reusing the index of one that is no longer in use.
    pub fn add(&mut self, pool: Pool) {
        let unused = |at: &u16| self.all[usize::from(*at)].used == 0;
        let place = match self.removed.iter().copied().find(unused) {
            Some(at) => at,
            None if self.all.len() < usize::from(u16::MAX) => self.all.len() as u16,
            None => return,
        };
        self.removed.remove(&place);
        self.live.insert((pool.address, pool.twice), place);
        self.join_group(place, &pool);
        match self.all.get_mut(usize::from(place)) {
            Some(old) => *old = pool,
            None => self.all.push(pool),
        }
    }

    fn join_group(&mut self, place: u16, pool: &Pool) {
        let (table, twice) = (pool.table, pool.twice);
        let at = self.groups.iter().position(|g| (g.table, g.twice) == (table, twice));
        let group = match at {
            Some(at) => &mut self.groups[at],
            None => {
                let new = Group { table, twice, members: Vec::new(), spent: [false; SPACES] };
                self.groups.push(new);
                let last = self.groups.len() - 1;
                &mut self.groups[last]
            }
        };
        group.spent = [false; SPACES];
        if let Err(at) = group.members.binary_search(&place) {
            group.members.insert(at, place);
        }
    }

    /// Marks an address as removed; its sessions have to be ended.
    pub fn remove(&mut self, address: u32, twice: bool) {
        let Some(place) = self.live.remove(&(address, twice)) else { return };
        self.removed.insert(place);
        self.all[usize::from(place)].live = false;
        for group in &mut self.groups {
            if let Ok(at) = group.members.binary_search(&place) {
                group.members.remove(at);
            }
        }
        self.groups.retain(|group| !group.members.is_empty());
    }

    /// The groups for hosts of a table: its own first, then the general one.
    fn suiting(&self, table: TableId, twice: bool) -> [Option<usize>; 2] {
        [Some(table), None]
            .map(|t| self.groups.iter().position(|g| (g.table, g.twice) == (t, twice)))
    }

    /// Indices of all addresses that a host of a table may use, the one that it has ports of first.
    pub fn all_for(&self, host: Ipv4Addr, table: TableId) -> Vec<u16> {
        let groups = self.suiting(table, false).into_iter().flatten().map(|g| &self.groups[g]);
        let turned = |group: &Group| {
            let mut all = group.members.clone();
            all.rotate_left(group.place_of(host));
            all
        };
        groups.flat_map(turned).collect()
    }

    /// Takes a free port for a host. A host keeps its address while that has free ports (RFC 4787
    /// REQ-2), and its own port if that is free; for UDP, another port has the parity of its own if
    /// possible. Ports of twice-NAT are never the host's own.
    pub fn take(
        &mut self,
        (host, own): (Ipv4Addr, u16),
        (table, twice): (u32, bool),
        at: usize,
        random: u64,
    ) -> Option<(u16, u16)> {
        let like = (Some(at) == position(protocol::UDP)).then_some(own);
        for g in self.suiting(TableId(table), twice).into_iter().flatten() {
            let Pools { all, groups, .. } = self;
            let group = &mut groups[g];
            if group.spent[at] {
                continue;
            }
            let (n, start) = (group.members.len(), group.place_of(host));
            for i in (start..n).chain(0..start) {
                let place = group.members[i];
                let ports = &mut all[usize::from(place)].ports[at];
                if !twice && ports.take_this(own) {
                    return Some((place, own));
                }
                if let Some(port) = ports.take(random, like) {
                    return Some((place, port));
                }
            }
            group.spent[at] = true;
        }
        None
    }

    /// Takes a free port of this address, whichever routing table it is for.
    pub fn take_of(
        &mut self,
        (address, twice): (u32, bool),
        own: u16,
        at: usize,
        random: u64,
    ) -> Option<(u16, u16)> {
        let like = (Some(at) == position(protocol::UDP)).then_some(own);
        let place = self.find(address, twice)?;
        let ports = &mut self.all[usize::from(place)].ports[at];
        if !twice && ports.take_this(own) {
            return Some((place, own));
        }
        Some((place, ports.take(random, like)?))
    }

    /// Takes this port of the address at an index. Returns false if it is not free.
    pub fn take_this(&mut self, place: u16, at: usize, port: u16) -> bool {
        self.all.get_mut(usize::from(place)).is_some_and(|p| p.ports[at].take_this(port))
    }

    /// Returns a port.
    pub fn give_back(&mut self, place: u16, at: usize, port: u16) {
        let Some(pool) = self.all.get_mut(usize::from(place)) else { return };
        pool.ports[at].give_back(port);
        self.refill(place, at);
    }

    /// Notes that an address of a group has a free port again.
    fn refill(&mut self, place: u16, at: usize) {
        let Some(pool) = self.all.get(usize::from(place)) else { return };
        let of = |g: &&mut Group| (g.table, g.twice) == (pool.table, pool.twice);
        if let Some(group) = self.groups.iter_mut().find(of) {
            group.spent[at] = false;
        }
    }

    /// Counts a session that uses an address.
    pub fn use_one(&mut self, place: u16) {
        if let Some(pool) = self.all.get_mut(usize::from(place)) {
            pool.used += 1;
        }
    }

    /// Ends a session's use of an address. `at`: index of the protocol, if it has ports.
    pub fn end_use(&mut self, place: u16, at: Option<usize>, port: u16) {
        if let Some(pool) = self.all.get_mut(usize::from(place)) {
            pool.used = pool.used.saturating_sub(1);
        }
        if let Some(at) = at {
            self.give_back(place, at, port);
        }
    }

    /// Reserves a port of an address for a static mapping, or releases it.
    pub fn reserve(&mut self, address: u32, ip: u8, port: u16, keep: bool) {
        let Some(at) = position(ip) else { return };
        let Some(place) = self.find(address, false) else { return };
        let ports = &mut self.all[usize::from(place)].ports[at];
        if keep {
            ports.keep(port);
        } else {
            ports.release(port);
            self.refill(place, at);
        }
    }

    /// Index of an address in use.
    pub fn find(&self, address: u32, twice: bool) -> Option<u16> {
        self.live.get(&(address, twice)).copied()
    }
}
