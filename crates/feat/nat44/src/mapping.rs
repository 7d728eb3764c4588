//! Static mappings of external addresses and ports to inside hosts.

use crate::owners::Rule;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_fib::TableId;
use thalweg_tables::CowMap;
use thalweg_tables::hash::{FastHash, mix64};

/// Cases in which the source is translated too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TwiceNat {
    /// Never.
    #[default]
    Never,
    /// Always.
    Always,
    /// Sessions of a host that calls itself (self-twice-NAT).
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
    /// Cases in which the source is translated too.
    pub twice: TwiceNat,
    /// Applies to sessions opened from outside only.
    pub out2in_only: bool,
    /// Back ends of a load-balancing mapping.
    pub backends: Vec<Backend>,
    /// Lifetime of an affinity in seconds, at least: all flows of a client go to the same back end
    /// while it lasts; 0 balances per flow.
    pub affinity: u32,
    /// Pool address that sources are translated to, with twice-NAT.
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

    /// Returns the inside address, port and table for a packet of `caller` to external port `port`.
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

/// An inside endpoint with its routing table.
type Inside = (Endpoint, u32);

/// All static mappings, indexed by both sides. A copy shares them.
#[derive(Clone, Debug, Default)]
pub struct Mappings {
    outside: CowMap<Endpoint, Arc<Mapping>, FastHash>,
    inside: CowMap<Inside, Arc<Mapping>, FastHash>,
    /// Workers of inside endpoints' sessions, if not by host.
    rules: CowMap<Inside, Rule, FastHash>,
}

/// The mappings that have a key, by their numbers. One of them counts.
#[derive(Debug)]
struct Claims<K, V>(HashMap<K, Vec<(u64, V)>, FastHash>);

impl<K, V> Default for Claims<K, V> {
    fn default() -> Self {
        Claims(HashMap::default())
    }
}

impl<K: Hash + Eq, V> Claims<K, V> {
    fn get(&self, key: &K) -> &[(u64, V)] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, key: K, number: u64, value: V) -> &[(u64, V)] {
        let all = self.0.entry(key).or_insert_with(|| Vec::with_capacity(1));
        let at = all.partition_point(|(n, _)| *n < number);
        all.insert(at, (number, value));
        all
    }

    fn remove(&mut self, key: &K, number: u64) -> &[(u64, V)] {
        if let Some(all) = self.0.get_mut(key) {
            if let Ok(at) = all.binary_search_by_key(&number, |(n, _)| *n) {
                all.remove(at);
            }
            if all.is_empty() {
                self.0.remove(key);
            }
        }
        self.get(key)
    }
}

/// A mapping as it is indexed.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) mapping: Arc<Mapping>,
    /// The part that its inside hosts need, which other back ends leave as it is.
    of_hosts: Arc<Mapping>,
    /// True if inside hosts share its external address.
    is_pooled: bool,
}

impl Held {
    /// The host that is assigned to workers by port for it, with its table.
    pub(crate) fn host_by_port(&self) -> Option<(u32, u32)> {
        let m = &self.mapping;
        let host = (m.local.to_bits(), m.table.get());
        (m.is_address_only() && self.is_pooled).then_some(host)
    }
}

/// Mappings with what it takes to add and remove one among many. Each has a number; the order of
/// numbers decides which one counts where several have the same key.
#[derive(Debug, Default)]
pub(crate) struct Index {
    all: Mappings,
    outside: Claims<Endpoint, Arc<Mapping>>,
    inside: Claims<Inside, Arc<Mapping>>,
    rules: Claims<Inside, Rule>,
    held: HashMap<u64, Held, FastHash>,
}

impl Mapping {
    /// Returns whether its external address is one of the translator's: that of an identity mapping
    /// is not.
    pub(crate) fn takes_address(&self) -> bool {
        self.external != self.local
    }

    /// Its external address, protocol and port, if it has a port.
    pub(crate) fn port_key(&self) -> Option<(u32, u8, u16)> {
        let key = (self.external.to_bits(), self.protocol, self.external_port);
        (!self.is_address_only()).then_some(key)
    }

    fn outside_key(&self) -> Endpoint {
        (self.external.to_bits(), self.external_port, self.protocol)
    }

    fn backend_keys(&self) -> impl Iterator<Item = Inside> {
        self.backends.iter().map(|b| self.backend_key(b))
    }

    fn backend_key(&self, b: &Backend) -> Inside {
        ((b.address.to_bits(), b.port, self.protocol), b.table.get())
    }

    /// The mapping without back ends.
    fn of_hosts(self: &Arc<Mapping>) -> Arc<Mapping> {
        match self.backends.is_empty() {
            true => self.clone(),
            false => Arc::new(Mapping { backends: Vec::new(), ..(**self).clone() }),
        }
    }

    /// The endpoints that it translates when they open a session.
    fn inside_keys(&self) -> Vec<Inside> {
        let own = ((self.local.to_bits(), self.local_port, self.protocol), self.table.get());
        match (self.out2in_only, self.backends.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => vec![own],
            (false, false) => self.backend_keys().collect(),
        }
    }

    /// Rule that assigns sessions of its endpoints. Its external address may be of a pool that
    /// inside hosts share (`is_pooled`).
    fn rules(&self, is_pooled: bool) -> Vec<(Inside, Rule)> {
        let mut all = Vec::new();
        if self.is_address_only() && is_pooled {
            all.push((((self.local.to_bits(), 0, 0), self.table.get()), Rule::Port));
        }
        all.extend(self.backend_keys().map(|key| (key, Rule::Peer)));
        all
    }
}

impl Index {
    pub(crate) fn add(&mut self, number: u64, mapping: Mapping, is_pooled: bool) {
        let mapping = Arc::new(mapping);
        let of_hosts = mapping.of_hosts();
        let key = mapping.outside_key();
        if let [.., (_, last)] = self.outside.add(key, number, mapping.clone()) {
            self.all.outside.insert(key, last.clone());
        }
        for (key, rule) in mapping.rules(is_pooled) {
            self.add_rule(key, number, rule);
        }
        for key in mapping.inside_keys() {
            self.add_inside(key, number, &of_hosts);
        }
        self.held.insert(number, Held { mapping, of_hosts, is_pooled });
    }

    fn add_rule(&mut self, key: Inside, number: u64, rule: Rule) {
        if let [.., (_, last)] = self.rules.add(key, number, rule) {
            self.all.rules.insert(key, *last);
        }
    }

    fn remove_rule(&mut self, key: Inside, number: u64) {
        match self.rules.remove(&key, number) {
            [.., (_, last)] => self.all.rules.insert(key, *last),
            [] => self.all.rules.remove(&key),
        };
    }

    fn add_inside(&mut self, key: Inside, number: u64, mapping: &Arc<Mapping>) {
        if let [(_, first), ..] = self.inside.add(key, number, mapping.clone()) {
            self.all.inside.insert(key, first.clone());
        }
    }

    fn remove_inside(&mut self, key: Inside, number: u64) {
        match self.inside.remove(&key, number) {
            [(_, first), ..] => self.all.inside.insert(key, first.clone()),
            [] => self.all.inside.remove(&key),
        };
    }

    /// Replaces a load-balancing mapping by one that has this back end more, or less.
    pub(crate) fn set_backend(&mut self, number: u64, new: Mapping, backend: &Backend, add: bool) {
        let Some(held) = self.held.get_mut(&number) else { return };
        let new = Arc::new(new);
        held.mapping = new.clone();
        let (outside, of_hosts) = (new.outside_key(), held.of_hosts.clone());
        self.outside.remove(&outside, number);
        if let [.., (_, last)] = self.outside.add(outside, number, new.clone()) {
            self.all.outside.insert(outside, last.clone());
        }
        let key = new.backend_key(backend);
        match add {
            true => self.add_rule(key, number, Rule::Peer),
            false => self.remove_rule(key, number),
        }
        match (new.out2in_only, add) {
            (true, _) => {}
            (false, true) => self.add_inside(key, number, &of_hosts),
            (false, false) => self.remove_inside(key, number),
        }
    }

    /// Removes the mapping with a number.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Held> {
        let held = self.held.remove(&number)?;
        let mapping = held.mapping.clone();
        for (key, _) in mapping.rules(held.is_pooled) {
            self.remove_rule(key, number);
        }
        for key in mapping.inside_keys() {
            self.remove_inside(key, number);
        }
        let key = mapping.outside_key();
        match self.outside.remove(&key, number) {
            [.., (_, last)] => self.all.outside.insert(key, last.clone()),
            [] => self.all.outside.remove(&key),
        };
        Some(held)
    }

    /// The numbers of the mappings of a whole external address.
    pub(crate) fn of_address(&self, address: Ipv4Addr) -> impl Iterator<Item = u64> + '_ {
        self.outside.get(&(address.to_bits(), 0, 0)).iter().map(|(number, _)| *number)
    }

    /// Returns whether a mapping has an external address, protocol and port.
    pub(crate) fn has_port(&self, (address, protocol, port): (u32, u8, u16)) -> bool {
        !self.outside.get(&(address, port, protocol)).is_empty()
    }

    /// Returns whether sessions of a host and table are assigned by [`Rule::Port`].
    pub(crate) fn is_by_port(&self, (host, table): (u32, u32)) -> bool {
        !self.rules.get(&((host, 0, 0), table)).is_empty()
    }

    /// The mappings, as workers read them.
    pub(crate) fn all(&self) -> &Mappings {
        &self.all
    }
}

impl Mappings {
    /// Indexes a list; `pooled` are the pool addresses that inside hosts share.
    pub fn new(all: Vec<Mapping>, pooled: &HashSet<u32, FastHash>) -> Mappings {
        let mut index = Index::default();
        for (number, mapping) in (0..).zip(all) {
            let is_pooled = pooled.contains(&mapping.external.to_bits());
            index.add(number, mapping, is_pooled);
        }
        index.all
    }

    /// Number of keys in the inside and the outside index.
    pub fn keys(&self) -> (usize, usize) {
        (self.inside.len(), self.outside.len())
    }

    /// The mapping of an external endpoint.
    pub fn by_external(&self, address: u32, port: u16, protocol: u8) -> Option<&Mapping> {
        let exact = self.outside.get(&(address, port, protocol));
        exact.or_else(|| self.outside.get(&(address, 0, 0))).map(Arc::as_ref)
    }

    /// Returns the rule that assigns sessions of an inside endpoint to workers.
    pub(crate) fn rule(&self, address: u32, port: u16, protocol: u8, table: TableId) -> Rule {
        if self.rules.is_empty() {
            return Rule::Host;
        }
        let exact = self.rules.get(&((address, port, protocol), table.get()));
        let rule = exact.or_else(|| self.rules.get(&((address, 0, 0), table.get())));
        rule.copied().unwrap_or(Rule::Host)
    }

    /// The mapping that applies to packets from an inside endpoint, without back ends.
    pub fn of_host(
        &self,
        address: u32,
        port: u16,
        protocol: u8,
        table: TableId,
    ) -> Option<&Mapping> {
        let exact = self.inside.get(&((address, port, protocol), table.get()));
        exact.or_else(|| self.inside.get(&((address, 0, 0), table.get()))).map(Arc::as_ref)
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

    /// Mappings added and removed in any order are indexed as a list of those that are left.
    #[test]
    fn an_index_is_that_of_its_mappings() {
        let mut all: Vec<(u64, Mapping)> = Vec::new();
        let mut index = Index::default();
        let mut random = 1u64;
        for number in 0..2000u64 {
            random = mix64(random + number);
            let mut m = mapping([0, 6, 17][random as usize % 3], 0, 0);
            m.external = [192, 0, 2, (random >> 8) as u8 % 4].into();
            m.local = [10, 0, 0, (random >> 16) as u8 % 4].into();
            m.out2in_only = random >> 24 & 7 == 0;
            if m.protocol != 0 {
                m.external_port = (random >> 32) as u16 % 4;
                m.local_port = (random >> 40) as u16 % 4;
            }
            let is_pooled = |m: &Mapping| m.external.octets()[3] < 2;
            index.add(number, m.clone(), is_pooled(&m));
            all.push((number, m));
            while all.len() > (random >> 48) as usize % 40 {
                random = mix64(random);
                let (number, m) = all.remove(random as usize % all.len());
                assert_eq!(
                    index.remove(number).map(|held| (*held.mapping).clone()),
                    Some(m.clone())
                );
                let (address, port, protocol) = m.outside_key();
                let has_other = all.iter().any(|(_, o)| o.outside_key() == m.outside_key());
                assert_eq!(index.has_port((address, protocol, port)), has_other);
            }
            let pooled = (0..2).map(|n| 0xc000_0200 + n).collect();
            let list = Mappings::new(all.iter().map(|(_, m)| m.clone()).collect(), &pooled);
            assert_eq!(index.all().keys(), list.keys());
            let same = |a: Option<&Mapping>, b: Option<&Mapping>| assert_eq!(a, b);
            for (key, _) in list.outside.iter() {
                same(
                    index.all().outside.get(key).map(|m| &**m),
                    list.outside.get(key).map(|m| &**m),
                );
            }
            for (key, m) in list.inside.iter() {
                same(index.all().inside.get(key).map(|m| &**m), Some(m));
            }
            let by_port = |m: &Mapping| m.is_address_only() && is_pooled(m);
            for host in 0x0a00_0000..0x0a00_0004u32 {
                let is = all.iter().any(|(_, m)| by_port(m) && m.local.to_bits() == host);
                assert_eq!(index.is_by_port((host, 0)), is);
            }
        }
    }

    /// Back ends added and removed one by one are those of a mapping that has all of them.
    #[test]
    fn back_ends_come_and_go_one_by_one() {
        let backend = |n: u8| Backend {
            address: [10, 0, 1, n].into(),
            port: 80,
            table: TableId(0),
            share: 1,
        };
        for out2in_only in [false, true] {
            let mut m = Mapping { out2in_only, ..mapping(6, 80, 0) };
            m.backends = vec![backend(1), backend(2)];
            let mut index = Index::default();
            index.add(7, m.clone(), false);
            for (n, add) in [(3, true), (1, false), (4, true), (3, false)] {
                match add {
                    true => m.backends.push(backend(n)),
                    false => m.backends.retain(|b| *b != backend(n)),
                }
                index.set_backend(7, m.clone(), &backend(n), add);
                let whole = Mappings::new(vec![m.clone()], &HashSet::default());
                assert_eq!(index.all().keys(), whole.keys());
                assert_eq!(index.all().by_external(0xc000_0201, 80, 6), Some(&m));
                for host in 0x0a00_0100..0x0a00_0106 {
                    let of_host = |all: &Mappings| {
                        let mapping = all.of_host(host, 80, 6, TableId(0)).cloned();
                        (mapping, all.rule(host, 80, 6, TableId(0)))
                    };
                    assert_eq!(of_host(index.all()), of_host(&whole));
                }
            }
            index.remove(7);
            assert!(index.all().keys() == (0, 0) && index.all().rules.is_empty());
        }
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
