//! Addresses that hosts inside share.

use crate::ports::{Ports, Scheme};
use crate::worker::owner;
use std::net::Ipv4Addr;
use thalweg_wire::ip::protocol;

/// Protocols that have ports.
pub const PROTOCOLS: [u8; 3] = [protocol::TCP, protocol::UDP, protocol::ICMP];

/// The position of a protocol among those.
#[inline]
pub fn position(ip: u8) -> Option<usize> {
    PROTOCOLS.iter().position(|p| *p == ip)
}

/// An address and those of its ports that one worker gives away.
#[derive(Debug)]
pub struct Pool {
    /// The address.
    pub address: u32,
    /// Only for hosts of this routing table, if it says one.
    pub table: Option<u32>,
    /// For sources that are translated, too.
    pub twice: bool,
    /// False: it is given up as its sessions end.
    pub live: bool,
    /// Sessions that have a port of it.
    pub used: u32,
    /// By protocol.
    pub ports: [Ports; 3],
}

impl Pool {
    /// A worker's part of an address.
    pub fn new(
        address: u32,
        table: Option<u32>,
        twice: bool,
        scheme: Scheme,
        (worker, workers): (usize, usize),
    ) -> Pool {
        let share = scheme.share(worker, workers);
        let ports = std::array::from_fn(|_| Ports::new(scheme, share));
        Pool { address, table, twice, live: true, used: 0, ports }
    }
}

/// Addresses for the same hosts, in the order in which they came.
#[derive(Debug)]
struct Group {
    table: Option<u32>,
    twice: bool,
    members: Vec<u16>,
    /// By protocol: no member has a port left, as far as is known.
    spent: [bool; 3],
}

/// A worker's addresses.
#[derive(Debug, Default)]
pub struct Pools {
    all: Vec<Pool>,
    groups: Vec<Group>,
}

impl Pools {
    /// All that there are, with those that are being given up.
    pub fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.all.iter()
    }

    /// The address in this place.
    pub fn get(&self, at: u16) -> Option<&Pool> {
        self.all.get(usize::from(at))
    }

    /// The address in this place, as a packet has it.
    pub fn address(&self, at: u16) -> Ipv4Addr {
        self.get(at).map_or(Ipv4Addr::UNSPECIFIED, |p| p.address.into())
    }

    /// Adds an address, in the place of one that nobody uses any more if there is such.
    pub fn add(&mut self, pool: Pool) {
        match self.all.iter().position(|p| !p.live && p.used == 0) {
            Some(at) => self.all[at] = pool,
            None if self.all.len() < usize::from(u16::MAX) => self.all.push(pool),
            None => {}
        }
        self.regroup();
    }

    /// Gives addresses up: their sessions are to end.
    pub fn drop_these(&mut self, which: impl Fn(&Pool) -> bool) {
        self.all.iter_mut().filter(|p| which(p)).for_each(|p| p.live = false);
        self.regroup();
    }

    fn regroup(&mut self) {
        self.groups.clear();
        for (i, p) in self.all.iter().enumerate().filter(|(_, p)| p.live) {
            let same = |g: &&mut Group| (g.table, g.twice) == (p.table, p.twice);
            match self.groups.iter_mut().find(same) {
                Some(group) => group.members.push(i as u16),
                None => self.groups.push(Group {
                    table: p.table,
                    twice: p.twice,
                    members: vec![i as u16],
                    spent: [false; 3],
                }),
            }
        }
    }

    /// The groups for hosts of a table: that for them alone first.
    fn suiting(&self, table: u32, twice: bool) -> [Option<usize>; 2] {
        [Some(table), None]
            .map(|t| self.groups.iter().position(|g| (g.table, g.twice) == (t, twice)))
    }

    /// The places of all addresses that hosts of a table may have.
    pub fn all_for(&self, table: u32) -> Vec<u16> {
        let groups = self.suiting(table, false).into_iter().flatten();
        groups.flat_map(|g| self.groups[g].members.iter().copied()).collect()
    }

    /// An address with a free port of a protocol for a host, always the same one while it has any
    /// (RFC 4787 REQ-2); the port is taken, for UDP one with the parity of the host's own.
    pub fn take(
        &mut self,
        (host, own): (Ipv4Addr, u16),
        (table, twice): (u32, bool),
        at: usize,
        random: u64,
    ) -> Option<(u16, u16)> {
        let like = (Some(at) == position(protocol::UDP)).then_some(own);
        for g in self.suiting(table, twice).into_iter().flatten() {
            let Pools { all, groups } = self;
            let group = &mut groups[g];
            if group.spent[at] {
                continue;
            }
            let n = group.members.len();
            let start = owner(host, n);
            for i in (start..n).chain(0..start) {
                let place = group.members[i];
                if let Some(port) = all[usize::from(place)].ports[at].take(random, like) {
                    return Some((place, port));
                }
            }
            group.spent[at] = true;
        }
        None
    }

    /// A port of this address, whichever routing table it is for.
    pub fn take_of(
        &mut self,
        (address, twice): (u32, bool),
        own: u16,
        at: usize,
        random: u64,
    ) -> Option<(u16, u16)> {
        let like = (Some(at) == position(protocol::UDP)).then_some(own);
        let place = self.find(address, twice)?;
        let port = self.all[usize::from(place)].ports[at].take(random, like)?;
        Some((place, port))
    }

    /// Takes this port of the address in a place. False if it is not free.
    pub fn take_this(&mut self, place: u16, at: usize, port: u16) -> bool {
        self.all.get_mut(usize::from(place)).is_some_and(|p| p.ports[at].take_this(port))
    }

    /// Gives a port back.
    pub fn give_back(&mut self, place: u16, at: usize, port: u16) {
        let Some(pool) = self.all.get_mut(usize::from(place)) else { return };
        pool.ports[at].give_back(port);
        self.refill(place, at);
    }

    /// A port of an address is free again: its group is worth a look.
    fn refill(&mut self, place: u16, at: usize) {
        let Some(pool) = self.all.get(usize::from(place)) else { return };
        let of = |g: &&mut Group| (g.table, g.twice) == (pool.table, pool.twice);
        if let Some(group) = self.groups.iter_mut().find(of) {
            group.spent[at] = false;
        }
    }

    /// A session has a port of an address.
    pub fn use_one(&mut self, place: u16) {
        if let Some(pool) = self.all.get_mut(usize::from(place)) {
            pool.used += 1;
        }
    }

    /// A session that had a port of an address has ended. `at`: of which protocol, if it has ports.
    pub fn end_use(&mut self, place: u16, at: Option<usize>, port: u16) {
        if let Some(pool) = self.all.get_mut(usize::from(place)) {
            pool.used = pool.used.saturating_sub(1);
        }
        if let Some(at) = at {
            self.give_back(place, at, port);
        }
    }

    /// Keeps a port of an address for a static mapping, or gives it free.
    pub fn reserve(&mut self, address: u32, ip: u8, port: u16, keep: bool) {
        let Some(at) = position(ip) else { return };
        for place in 0..self.all.len() {
            let pool = &mut self.all[place];
            if pool.address != address || pool.twice || !pool.live {
                continue;
            }
            if keep {
                pool.ports[at].keep(port);
            } else {
                pool.ports[at].release(port);
                self.refill(place as u16, at);
            }
        }
    }

    /// The place of the address in use that stands for hosts of a table.
    pub fn find(&self, address: u32, twice: bool) -> Option<u16> {
        let is = |p: &Pool| p.live && p.address == address && p.twice == twice;
        self.all.iter().position(is).map(|i| i as u16)
    }
}
