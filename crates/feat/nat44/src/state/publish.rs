//! Publication of the configuration to workers: of settings as a whole, and of pool addresses and
//! mappings as changes, which take the same time however many there are.

use super::{Address, Nat44, Order, StaticMapping, lent, order, order_one};
use crate::config::Config;
use crate::mapping::Mapping;
use crate::pool::Pool;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// An external address, protocol and port that a mapping reserves.
pub(super) type Port = (u32, u8, u16);

/// Parts that may differ from the published state.
#[derive(Default, Debug)]
pub(super) struct Change {
    /// Pool addresses, and whether for twice-NAT.
    pub(super) pools: BTreeSet<(bool, Ipv4Addr)>,
    /// Numbers of mappings that are new, replaced or removed.
    pub(super) mappings: BTreeSet<u64>,
}

/// Effects of a change on workers and on ARP.
struct Effects {
    config: Config,
    gone: Vec<Address>,
    come: Vec<Address>,
    ports: Vec<(Port, bool)>,
    /// Addresses that ARP begins or ceases to answer for, by group.
    lent: Vec<(u64, Ipv4Addr, bool)>,
}

/// Addresses, ports and hosts that the mappings of a change touch, before or after.
#[derive(Default)]
struct Touched {
    addresses: BTreeSet<u32>,
    ports: BTreeSet<Port>,
    hosts_by_port: Vec<(u32, u32)>,
}

impl Touched {
    fn note(&mut self, m: &Mapping) {
        self.addresses.insert(m.external.to_bits());
        self.ports.extend(m.port_key());
    }
}

impl Nat44 {
    /// Returns what is in force of a pool address as configured.
    fn pool_address(&self, (twice, address): (bool, Ipv4Addr)) -> Option<Address> {
        // A duplicate would assign its ports twice; the configured address takes precedence.
        let lent = || self.borrowed.is_lent(twice, address);
        find(&self.addresses, (twice, address))
            .or_else(|| lent().then_some(Address { twice, address, table: None }))
    }

    /// Brings the list of pool addresses in force up to date; returns those that are gone, and new.
    fn renew_pools(&mut self, change: &Change) -> (Vec<Address>, Vec<Address>) {
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        for key in &change.pools {
            let (old, new) = (find(&self.active, *key), self.pool_address(*key));
            if old != new {
                old.iter().for_each(|a| _ = self.active.remove(a));
                self.active.extend(new);
                gone.extend(old);
                come.extend(new);
            }
        }
        (gone, come)
    }

    /// The mapping as workers have it; `None` while its interface has no address.
    fn resolved(&self, m: &StaticMapping) -> Option<Mapping> {
        let mut mapping = m.mapping.clone();
        if let Some(sw_if) = m.external_if {
            mapping.external = self.borrowed.first(sw_if)?;
            if m.identity {
                mapping.local = mapping.external;
            }
        }
        Some(mapping)
    }

    /// Applies a change to what was last published.
    fn apply(&mut self, change: &Change) -> Effects {
        let mut config = self.config().clone();
        let (gone, come) = self.renew_pools(change);
        let mut numbers = change.mappings.clone();
        // A host that maps a whole address that others share is assigned to workers by port.
        let shared = gone.iter().chain(&come).filter(|a| !a.twice);
        numbers.extend(shared.flat_map(|a| self.index.of_address(a.address)));
        let mut touched = Touched::default();
        touched.addresses.extend(gone.iter().chain(&come).map(|a| a.address.to_bits()));
        for number in &numbers {
            if let Some(held) = self.index.remove(*number) {
                touched.note(&held.mapping);
                touched.hosts_by_port.extend(held.host_by_port());
                config.addresses.unmap(&held.mapping);
            }
        }
        gone.iter().for_each(|a| config.drop_pool(a.address.to_bits(), a.twice));
        come.iter().for_each(|a| config.add_pool(a.address.to_bits(), a.twice));
        config.pool_for_all = self.pool_tables.contains_key(&None);
        for table in gone.iter().chain(&come).filter_map(|a| a.table) {
            config.set_pool_table(table, self.pool_tables.contains_key(&Some(table)));
        }
        for number in numbers {
            let Some(m) = self.mappings.get(&number).and_then(|m| self.resolved(m)) else {
                continue;
            };
            touched.note(&m);
            config.addresses.map(&m);
            let is_pooled = config.pooled.contains(&m.external.to_bits());
            self.index.add(number, m, is_pooled);
        }
        self.note_hosts_by_port(&touched.hosts_by_port);
        config.formerly_by_port = self.formerly_by_port.clone();
        config.mappings = self.index.all().clone();
        let ports = self.renew_ports(&touched.ports, &come, &config);
        let mut lent = Vec::new();
        for address in touched.addresses {
            let is = config.is_external(address);
            if is != self.config().is_external(address) {
                lent.push((lent::EXTERNAL, Ipv4Addr::from_bits(address), is));
            }
        }
        for (all, is) in [(&gone, false), (&come, true)] {
            let twice = all.iter().filter(|a| a.twice);
            lent.extend(twice.map(|a| (lent::group_of_twice(a.table), a.address, is)));
        }
        Effects { config, gone, come, ports, lent }
    }

    /// Brings the reserved ports up to date; returns the ports of pools that workers reserve or
    /// release. A port that another mapping has now stays reserved all the time.
    fn renew_ports(
        &mut self,
        touched: &BTreeSet<Port>,
        come: &[Address],
        config: &Config,
    ) -> Vec<(Port, bool)> {
        let mut orders = Vec::new();
        let is_new = |address: u32| come.iter().any(|a| !a.twice && a.address.to_bits() == address);
        for key in touched {
            let is = self.index.has_port(*key);
            let was = if is { !self.reserved.insert(*key) } else { self.reserved.remove(key) };
            if is != was && config.pooled.contains(&key.0) && !is_new(key.0) {
                orders.push((*key, is));
            }
        }
        for a in come.iter().filter(|a| !a.twice) {
            let address = a.address.to_bits();
            let all = self.reserved.range((address, 0, 0)..=(address, u8::MAX, u16::MAX));
            orders.extend(all.map(|key| (*key, true)));
        }
        orders.sort_by_key(|(_, keep)| *keep);
        orders
    }

    /// Settings in the form of workers, with the roles, pool addresses and mappings of `config`.
    fn with_settings(&self, config: Config) -> Config {
        Config {
            timeouts: self.timeouts.by_class(),
            forwarding: self.forwarding,
            mss: self.mss,
            scheme: self.scheme,
            refuse: self.refuse,
            vrfs: Arc::new(self.vrfs.clone()),
            owners: self.owners.clone(),
            outside_vrf: Some(self.default_vrfs.outside).filter(|table| *table != TableId(0)),
            ..config
        }
    }
}

/// The address of a list, for whichever table it is.
pub(super) fn find(all: &BTreeSet<Address>, (twice, address): (bool, Ipv4Addr)) -> Option<Address> {
    let with = |table| Address { twice, address, table };
    all.range(with(None)..=with(Some(TableId(u32::MAX)))).next().copied()
}

/// Publishes settings to workers.
pub(super) fn publish(c: &mut Control) {
    let nat = c.state::<Nat44>();
    let mut nat = nat.borrow_mut();
    let config = nat.with_settings(nat.config().clone());
    nat.writer.publish(c.domain(), config);
}

/// Publishes that no roles, pool addresses and mappings are left.
pub(super) fn publish_none(c: &mut Control) {
    {
        let nat = c.state::<Nat44>();
        let mut nat = nat.borrow_mut();
        let config = nat.with_settings(Config::default());
        nat.answering = lent::Answering::default();
        nat.writer.publish(c.domain(), config);
    }
    thalweg_feat_arp::answer_for_none(c);
}

/// Publishes a change of pool addresses and mappings.
pub(super) fn publish_change(c: &mut Control, change: &Change) {
    let nat = c.state::<Nat44>();
    let Effects { config, gone, come, ports, lent } = nat.borrow_mut().apply(change);
    let is_twice = gone.iter().chain(&come).any(|a| a.twice);
    let (scheme, owners) = (nat.borrow().scheme, nat.borrow().owners(c.workers()));
    for a in &gone {
        order(c, |_| Order::Drop { address: a.address.to_bits(), twice: a.twice });
    }
    for a in &come {
        for (part, worker) in owners.iter().enumerate() {
            let part = (part, owners.len());
            let pool = Pool::new(a.address.to_bits(), a.table, a.twice, scheme, part);
            order_one(c, *worker, Order::Add(Box::new(pool)));
        }
    }
    for ((address, protocol, port), keep) in ports {
        order(c, |_| Order::Reserve { address, protocol, port, keep });
    }
    nat.borrow_mut().writer.publish(c.domain(), config);
    crate::waiting::try_soon(c);
    if !lent.is_empty() {
        thalweg_feat_arp::answer_for_these(c, &lent);
    }
    if is_twice {
        lent::follow_twice(c, &gone, &come);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::TwiceNat;
    use thalweg_tables::hash::mix64;
    use thalweg_tables::qsbr::Domain;
    use thalweg_tables::snapshot;

    const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    /// Orders about ports, and addresses that ARP begins or ceases to answer for.
    type Done = (Vec<(Port, bool)>, Vec<(u64, Ipv4Addr, bool)>);

    struct World {
        nat: Nat44,
        domain: Arc<Domain>,
    }

    impl World {
        fn new() -> World {
            let nat = Nat44::new(snapshot::channel(Config::default()).0);
            World { nat, domain: Domain::new() }
        }

        /// Publishes a change; returns what workers do about ports, and ARP about addresses.
        fn apply(&mut self, change: &Change) -> Done {
            let Effects { config, ports, lent, .. } = self.nat.apply(change);
            self.nat.writer.publish(&self.domain, config);
            (ports, lent)
        }

        fn set_pool(&mut self, twice: bool, address: Ipv4Addr, on: bool) -> Change {
            let all = &mut self.nat.addresses;
            let entry = Address { twice, address, table: None };
            _ = if on { all.insert(entry) } else { all.remove(&entry) };
            Change { pools: [(twice, address)].into(), ..Change::default() }
        }

        /// The sets of addresses, the numbers of keys and the reserved ports that workers know.
        fn state(&self) -> impl PartialEq + std::fmt::Debug + use<> {
            let config = self.nat.config();
            let sets = [&config.pooled, &config.twice, &config.addresses.pooled]
                .map(|set| set.iter().copied().collect::<BTreeSet<u32>>());
            let counts = [&config.addresses.mapped, &config.addresses.kept]
                .map(|map| map.iter().map(|(a, n)| (*a, *n)).collect::<BTreeSet<_>>());
            let hosts = (0..4).map(|n| self.nat.index.is_by_port((HOSTS + n, 0)));
            let rest = (self.nat.reserved.clone(), hosts.collect::<Vec<_>>());
            (sets, counts, config.mappings.keys(), self.nat.active.clone(), rest)
        }
    }

    const HOSTS: u32 = 0x0a00_0000;

    fn mappings(numbers: &[u64]) -> Change {
        Change { mappings: numbers.iter().copied().collect(), ..Change::default() }
    }

    fn mapping(protocol: u8, external: Ipv4Addr, port: u16, local: Ipv4Addr) -> StaticMapping {
        let mapping = Mapping {
            protocol,
            external,
            external_port: port,
            local,
            local_port: port,
            table: TableId(0),
            twice: TwiceNat::Never,
            out2in_only: false,
            backends: Vec::new(),
            affinity: 0,
            exact: None,
        };
        StaticMapping { mapping, external_if: None, identity: false, tag: String::new() }
    }

    #[test]
    fn a_replaced_mapping_keeps_its_port() {
        let mut world = World::new();
        let key = (SHARED.to_bits(), 6, 80);
        let pool = world.set_pool(false, SHARED, true);
        assert_eq!(world.apply(&pool), (vec![], vec![(lent::EXTERNAL, SHARED, true)]));
        let mut m = mapping(6, SHARED, 80, Ipv4Addr::from_bits(HOSTS));
        world.nat.mappings.insert(0, m.clone());
        assert_eq!(world.apply(&mappings(&[0])), (vec![(key, true)], vec![]));
        m.mapping.local_port = 8080;
        world.nat.mappings.insert(0, m.clone());
        assert_eq!(world.apply(&mappings(&[0])), (vec![], vec![]));
        let host = Ipv4Addr::from_bits(HOSTS).to_bits();
        let of_host = |world: &World, port| {
            world.nat.config().mappings.of_host(host, port, 6, TableId(0)).is_some()
        };
        assert!(of_host(&world, 8080) && !of_host(&world, 80));
        // Another mapping takes the port over.
        world.nat.mappings.remove(&0);
        world.nat.mappings.insert(1, m);
        assert_eq!(world.apply(&mappings(&[0, 1])), (vec![], vec![]));
        // A pool address that comes back has the port reserved from the beginning.
        let gone = world.set_pool(false, SHARED, false);
        assert_eq!(world.apply(&gone), (vec![], vec![]));
        let back = world.set_pool(false, SHARED, true);
        assert_eq!(world.apply(&back), (vec![(key, true)], vec![]));
        world.nat.mappings.remove(&1);
        assert_eq!(world.apply(&mappings(&[1])), (vec![(key, false)], vec![]));
    }

    /// Changes one by one lead to the same as all at once.
    #[test]
    fn changes_add_up() {
        let (mut world, mut random) = (World::new(), 1u64);
        for number in 0..600u64 {
            random = mix64(random + number);
            let byte = |at: u32| (random >> at) as u8;
            let external = Ipv4Addr::new(192, 0, 2, byte(8) % 4);
            let mut change = Change::default();
            if byte(0) % 3 == 0 {
                change = world.set_pool(byte(16) % 2 == 0, external, byte(24) % 2 == 0);
            }
            if byte(0) % 3 != 1 {
                let local = if byte(32) % 4 == 0 {
                    external
                } else {
                    Ipv4Addr::from_bits(HOSTS + u32::from(byte(32) % 4))
                };
                let (protocol, port) = if byte(40) % 2 == 0 { (0, 0) } else { (6, 80) };
                world.nat.mappings.insert(number, mapping(protocol, external, port, local));
                change.mappings.insert(number);
            }
            if byte(48) % 2 == 0
                && let Some(old) = world.nat.mappings.keys().nth(usize::from(byte(56) % 8))
            {
                let old = *old;
                world.nat.mappings.remove(&old);
                change.mappings.insert(old);
            }
            world.apply(&change);
            let mut whole = World::new();
            whole.nat.mappings.clone_from(&world.nat.mappings);
            whole.nat.addresses.clone_from(&world.nat.addresses);
            let pools = world.nat.addresses.iter().map(|a| (a.twice, a.address)).collect();
            let mappings = world.nat.mappings.keys().copied().collect();
            whole.apply(&Change { pools, mappings });
            assert_eq!(world.state(), whole.state());
        }
    }
}
