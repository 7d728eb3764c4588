//! Static mappings of external addresses and ports to inside hosts.

use crate::owners::Rule;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::net::Ipv4Addr;
use thalweg_fib::TableId;
use thalweg_tables::hash::mix64;

/// A fast hash for configured keys, which an attacker cannot choose.
#[derive(Clone, Copy, Default, Debug)]
pub struct FastHash;

/// The hasher.
#[derive(Debug)]
pub struct FastHasher(u64);

impl BuildHasher for FastHash {
    type Hasher = FastHasher;
    #[inline]
    fn build_hasher(&self) -> FastHasher {
        FastHasher(0)
    }
}

impl Hasher for FastHasher {
    #[inline]
    fn finish(&self) -> u64 {
        mix64(self.0)
    }
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }
    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.write_u64(u64::from(n));
    }
    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// When the source is translated too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TwiceNat {
    /// Never.
    #[default]
    Never,
    /// Always.
    Always,
    /// Only if the host calls itself (self-twice-NAT).
    SelfOnly,
}

/// A back end of a load-balancing mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backend {
    /// Address.
    pub address: Ipv4Addr,
    /// Port.
    pub port: u16,
    /// Routing table.
    pub table: TableId,
    /// Relative weight.
    pub share: u8,
}

/// A static mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// TCP, UDP or ICMP; 0 maps all traffic of the address.
    pub protocol: u8,
    /// External address.
    pub external: Ipv4Addr,
    /// External port; 0 = all.
    pub external_port: u16,
    /// Address of the inside host, without back ends.
    pub local: Ipv4Addr,
    /// Port of the inside host; 0 = all.
    pub local_port: u16,
    /// Routing table of the inside host.
    pub table: TableId,
    /// When the source is translated too.
    pub twice: TwiceNat,
    /// Applies to sessions opened from outside only.
    pub out2in_only: bool,
    /// Back ends of a load-balancing mapping.
    pub backends: Vec<Backend>,
    /// With a value other than 0, all flows of a client go to the same back end as long as that
    /// exists, which is at least the seconds given; 0 balances per flow.
    pub affinity: u32,
    /// With twice-NAT, the pool address that sources are translated to.
    pub exact: Option<Ipv4Addr>,
}

impl Mapping {
    /// Returns whether all ports are mapped.
    pub fn is_address_only(&self) -> bool {
        self.protocol == 0
    }

    /// Returns whether it leaves packets as they are.
    pub fn is_identity(&self) -> bool {
        self.backends.is_empty()
            && self.external == self.local
            && (self.is_address_only() || self.external_port == self.local_port)
    }

    /// Inside address, port and table for a packet of `caller` to external port `port`.
    pub fn target(&self, caller: Ipv4Addr, from: u16, port: u16) -> Option<(Ipv4Addr, u16, u32)> {
        if self.backends.is_empty() {
            let to = if self.is_address_only() { port } else { self.local_port };
            return Some((self.local, to, self.table.get()));
        }
        let caller = u64::from(caller.to_bits());
        let chosen = match self.affinity {
            0 => self.by_flow(mix64(caller << 16 | u64::from(from))),
            _ => self.by_caller(caller),
        }?;
        Some((chosen.address, chosen.port, chosen.table.get()))
    }

    fn by_flow(&self, hash: u64) -> Option<&Backend> {
        let all: u64 = self.backends.iter().map(|b| u64::from(b.share)).sum();
        let mut point = ((hash >> 32) * all) >> 32;
        self.backends.iter().find(|b| {
            let here = point < u64::from(b.share);
            point = point.saturating_sub(u64::from(b.share));
            here
        })
    }

    /// Weighted rendezvous hashing: each back end draws a number by its weight, and the largest
    /// wins. Removing a back end moves only its own clients, and a new one takes its share from
    /// all.
    fn by_caller(&self, caller: u64) -> Option<&Backend> {
        let draw = |b: &Backend| {
            let hash =
                mix64(mix64(caller) ^ u64::from(b.address.to_bits()) << 16 ^ u64::from(b.port));
            let chance = ((hash >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
            f64::from(b.share) / -chance.ln()
        };
        let shares = self.backends.iter().filter(|b| b.share > 0);
        shares.max_by(|a, b| draw(a).total_cmp(&draw(b)))
    }
}

/// Address, port and protocol; port and protocol 0 for a whole address.
type Endpoint = (u32, u16, u8);

/// Inside hosts with their routing tables.
pub(crate) type Hosts = HashSet<(u32, u32), FastHash>;

/// All static mappings, indexed by both sides.
#[derive(Clone, Debug, Default)]
pub struct Mappings {
    all: Vec<Mapping>,
    outside: HashMap<Endpoint, u32, FastHash>,
    inside: HashMap<(Endpoint, u32), u32, FastHash>,
    /// How sessions of inside endpoints are assigned to workers, if not by host.
    rules: HashMap<(Endpoint, u32), Rule, FastHash>,
}

impl Mappings {
    /// Indexes a list; `pooled` are the pool addresses that inside hosts share.
    pub fn new(all: Vec<Mapping>, pooled: &HashSet<u32, FastHash>) -> Mappings {
        let mut m = Mappings { all, ..Mappings::default() };
        for (i, mapping) in m.all.iter().enumerate() {
            let protocol = mapping.protocol;
            let external = (mapping.external.to_bits(), mapping.external_port, protocol);
            m.outside.insert(external, i as u32);
            if mapping.is_address_only() && pooled.contains(&external.0) {
                m.rules.insert(((mapping.local.to_bits(), 0, 0), mapping.table.get()), Rule::Port);
            }
            for b in &mapping.backends {
                m.rules
                    .insert(((b.address.to_bits(), b.port, protocol), b.table.get()), Rule::Peer);
            }
            let mut enter = |address: Ipv4Addr, port, table| {
                m.inside.entry(((address.to_bits(), port, protocol), table)).or_insert(i as u32);
            };
            if mapping.out2in_only {
                continue;
            }
            if mapping.backends.is_empty() {
                enter(mapping.local, mapping.local_port, mapping.table.get());
            }
            mapping.backends.iter().for_each(|b| enter(b.address, b.port, b.table.get()));
        }
        m
    }

    /// All mappings.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.all.iter()
    }

    /// Hosts whose sessions are assigned by [`Rule::Port`].
    pub(crate) fn hosts_by_port(&self) -> Hosts {
        let hosts = self.rules.iter().filter(|(_, rule)| **rule == Rule::Port);
        hosts.map(|(((host, _, _), table), _)| (*host, *table)).collect()
    }

    /// Number of keys in the inside and the outside index.
    pub fn keys(&self) -> (usize, usize) {
        (self.inside.len(), self.outside.len())
    }

    /// The mapping of an external endpoint.
    pub fn by_external(&self, address: u32, port: u16, protocol: u8) -> Option<&Mapping> {
        if self.all.is_empty() {
            return None;
        }
        let exact = self.outside.get(&(address, port, protocol));
        let index = exact.or_else(|| self.outside.get(&(address, 0, 0)))?;
        self.all.get(*index as usize)
    }

    /// How sessions of an inside endpoint are assigned to workers.
    pub(crate) fn rule(&self, address: u32, port: u16, protocol: u8, table: TableId) -> Rule {
        if self.rules.is_empty() {
            return Rule::Host;
        }
        let exact = self.rules.get(&((address, port, protocol), table.get()));
        let rule = exact.or_else(|| self.rules.get(&((address, 0, 0), table.get())));
        rule.copied().unwrap_or(Rule::Host)
    }

    /// The mapping that applies to packets from an inside endpoint.
    pub fn of_host(
        &self,
        address: u32,
        port: u16,
        protocol: u8,
        table: TableId,
    ) -> Option<&Mapping> {
        if self.inside.is_empty() {
            return None;
        }
        let exact = self.inside.get(&((address, port, protocol), table.get()));
        let index = exact.or_else(|| self.inside.get(&((address, 0, 0), table.get())))?;
        self.all.get(*index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(protocol: u8, external_port: u16, local_port: u16) -> Mapping {
        Mapping {
            protocol,
            external: [192, 0, 2, 1].into(),
            external_port,
            local: [10, 0, 0, 1].into(),
            local_port,
            table: TableId(0),
            twice: TwiceNat::Never,
            out2in_only: false,
            backends: Vec::new(),
            affinity: 0,
            exact: None,
        }
    }

    #[test]
    fn ports_come_before_addresses() {
        let m = Mappings::new(vec![mapping(0, 0, 0), mapping(6, 80, 8080)], &HashSet::default());
        let (outside, inside) = (0xc000_0201, 0x0a00_0001);
        let caller = Ipv4Addr::new(198, 51, 100, 7);
        let target =
            |port, protocol| m.by_external(outside, port, protocol)?.target(caller, 1, port);
        assert_eq!(target(80, 6), Some(([10, 0, 0, 1].into(), 8080, 0)));
        assert_eq!(target(81, 6), Some(([10, 0, 0, 1].into(), 81, 0)));
        assert_eq!(target(80, 17), Some(([10, 0, 0, 1].into(), 80, 0)));
        assert!(m.by_external(outside + 1, 80, 6).is_none());
        assert_eq!(m.of_host(inside, 8080, 6, TableId(0)).map(|m| m.external_port), Some(80));
        assert_eq!(m.of_host(inside, 9, 6, TableId(0)).map(|m| m.external_port), Some(0));
        assert!(m.of_host(inside, 9, 6, TableId(1)).is_none());
    }

    #[test]
    fn shares_hold() {
        let mut m = mapping(17, 53, 0);
        let backend = |n: u8, share| Backend {
            address: [10, 0, 0, n].into(),
            port: 53,
            table: TableId(0),
            share,
        };
        m.backends = vec![backend(1, 10), backend(2, 0), backend(3, 30)];
        let mut counts = [0; 4];
        for n in 0..4000u32 {
            let (address, ..) = m.target(n.into(), 9, 53).unwrap();
            counts[usize::from(address.octets()[3])] += 1;
        }
        assert_eq!(counts[2], 0);
        assert!((850..1150).contains(&counts[1]), "{counts:?}");
        m.backends.clear();
        m.out2in_only = true;
        let m = Mappings::new(vec![m], &HashSet::default());
        assert!(m.of_host(0x0a00_0001, 0, 17, TableId(0)).is_none());
    }

    #[test]
    fn clients_keep_their_back_end() {
        let mut m = mapping(17, 53, 0);
        let backend = |n: u8, share| Backend {
            address: [10, 0, 0, n].into(),
            port: 53,
            table: TableId(0),
            share,
        };
        (m.affinity, m.backends) = (60, (1..=4).map(|n| backend(n, 10 * n)).collect());
        let of = |m: &Mapping| -> Vec<u8> {
            let one = |n: u32| m.target(n.into(), n as u16, 53).unwrap().0.octets()[3];
            (0..4000).map(one).collect()
        };
        let before = of(&m);
        for n in 1..=4 {
            let share = before.iter().filter(|b| **b == n).count();
            let fair = 400 * usize::from(n);
            assert!((fair * 4 / 5..fair * 6 / 5).contains(&share), "{n}: {share}");
        }
        assert!((0..50).all(|port| m.target(7.into(), port, 53) == m.target(7.into(), 0, 53)));
        m.backends.remove(1);
        let moved = before.iter().zip(of(&m)).filter(|(b, a)| **b != *a && **b != 2).count();
        assert_eq!(moved, 0);
    }
}
