//! Addresses that bridge domains answer for: the table of ARP termination.
//!
//! Workers read it in one snapshot. A change copies a page of its rows.

use crate::L2;
use crate::error::L2Error;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use thalweg_api::Clients;
use thalweg_device::{MacAddr, SwIfIndex, interface};
use thalweg_graph::{Control, Event, Topic, clock};
use thalweg_tables::CowTable;
use thalweg_tables::hash::{mix128, random_seed};
use thalweg_tables::snapshot;

/// Maximum number of addresses of all bridge domains together.
pub const MAX_ARP_ENTRIES: usize = 1 << 15;
/// Rows: twice as many, so that what is looked for is near where it would be.
const ROWS: usize = 2 * MAX_ARP_ENTRIES;

/// An address of a host, by the number of its bridge domain.
type Key = (u16, IpAddr);

/// Addresses as workers read them: a hash table with linear probing.
#[derive(Clone)]
pub(crate) struct ArpTable {
    rows: CowTable<Option<(Key, MacAddr)>>,
    count: usize,
    seed: u64,
    /// True if a client wants to know who asks.
    pub(crate) watched: bool,
}

impl Default for ArpTable {
    fn default() -> ArpTable {
        ArpTable { rows: CowTable::new(), count: 0, seed: random_seed(), watched: false }
    }
}

impl ArpTable {
    fn row(&self, at: usize) -> Option<(Key, MacAddr)> {
        self.rows.get(at as u32).copied().flatten()
    }

    fn home(&self, (bridge, ip): Key) -> usize {
        let ip = match ip {
            IpAddr::V4(ip) => u128::from(ip.to_bits()),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let seed = self.seed ^ u64::from(bridge);
        mix128(seed, ip as u64, (ip >> 64) as u64) as usize % ROWS
    }

    /// Returns the row of a key, or the free one where it would be.
    fn place(&self, key: Key) -> usize {
        let mut at = self.home(key);
        while self.row(at).is_some_and(|(other, _)| other != key) {
            at = (at + 1) % ROWS;
        }
        at
    }

    /// Returns the MAC address of a host of a bridge domain.
    pub(crate) fn find(&self, bridge: u16, ip: IpAddr) -> Option<MacAddr> {
        self.row(self.place((bridge, ip))).map(|(_, mac)| mac)
    }

    fn set(&mut self, key: Key, mac: MacAddr) -> Result<(), L2Error> {
        let at = self.place(key);
        let is_new = self.row(at).is_none();
        if is_new && self.count == MAX_ARP_ENTRIES {
            return Err(L2Error::ArpFull);
        }
        self.count += usize::from(is_new);
        self.rows.set(at as u32, Some((key, mac)));
        Ok(())
    }

    fn remove(&mut self, key: Key) {
        let mut hole = self.place(key);
        if self.row(hole).is_none() {
            return;
        }
        self.count -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) % ROWS;
            let Some(row) = self.row(at) else { break };
            // One that is behind its home moves up, if that is no further than the hole.
            let behind = |from: usize| (at + ROWS - from) % ROWS;
            if behind(self.home(row.0)) >= behind(hole) {
                self.rows.set(hole as u32, Some(row));
                hole = at;
            }
        }
        self.rows.set(hole as u32, None);
    }
}

/// Main-thread state about hosts that ask.
pub(crate) struct ArpState {
    writer: snapshot::Writer<ArpTable>,
    /// Time when a client was last sent a host's addresses.
    heard: HashMap<(IpAddr, MacAddr, SwIfIndex), Instant>,
    lost: u64,
}

/// A client is not sent the same again for so long, as in VPP.
const QUIET: Duration = Duration::from_secs(10);
/// Hosts remembered meanwhile.
const MAX_HEARD: usize = 1 << 14;

/// Topic of hosts that ask.
pub(crate) struct ArpTopic(pub(crate) Topic);

pub(crate) fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(ArpTable::default());
    c.share(snapshot);
    let topic = c.topic("l2 arp term", heard);
    c.share(std::sync::Arc::new(ArpTopic(topic)));
    c.insert(ArpState { writer, heard: HashMap::new(), lost: 0 });
}

fn update<T>(c: &Control, change: impl FnOnce(&mut ArpTable) -> T) -> T {
    let state = c.state::<ArpState>();
    let mut state = state.borrow_mut();
    let mut table = state.writer.get().clone();
    let result = change(&mut table);
    state.writer.publish(c.domain(), table);
    result
}

/// Lets a bridge domain answer for an address.
///
/// # Errors
/// If there is no such bridge domain, an address is not a host's, or the table is full.
pub fn set_arp_entry(c: &Control, id: u32, ip: IpAddr, mac: MacAddr) -> Result<(), L2Error> {
    let l2 = c.state::<L2>();
    let mut l2 = l2.borrow_mut();
    let domain = l2.bridges.find(id)?;
    if !mac.is_unicast() {
        return Err(L2Error::NotUnicast);
    }
    if ip.is_multicast() || ip.is_unspecified() {
        return Err(L2Error::NotAHost(ip));
    }
    update(c, |table| table.set((domain.number, ip), mac))?;
    domain.arp.insert(ip, mac);
    Ok(())
}

/// Ends a bridge domain's answers for an address.
///
/// # Errors
/// If there is no such bridge domain, or it does not answer for this with that MAC address.
pub fn remove_arp_entry(c: &Control, id: u32, ip: IpAddr, mac: MacAddr) -> Result<(), L2Error> {
    let l2 = c.state::<L2>();
    let mut l2 = l2.borrow_mut();
    let domain = l2.bridges.find(id)?;
    if domain.arp.get(&ip) != Some(&mac) {
        return Err(L2Error::NoArpEntry { id, ip, mac: mac.to_string() });
    }
    domain.arp.remove(&ip);
    update(c, |table| table.remove((domain.number, ip)));
    Ok(())
}

/// Removes all addresses that a bridge domain answers for.
///
/// # Errors
/// If there is no such bridge domain.
pub fn flush_arp_entries(c: &Control, id: u32) -> Result<(), L2Error> {
    let l2 = c.state::<L2>();
    let mut l2 = l2.borrow_mut();
    let domain = l2.bridges.find(id)?;
    let (number, all) = (domain.number, std::mem::take(&mut domain.arp));
    if !all.is_empty() {
        update(c, |table| all.into_keys().for_each(|ip| table.remove((number, ip))));
    }
    Ok(())
}

/// Number of addresses that all bridge domains answer for.
pub(crate) fn count(c: &Control) -> usize {
    c.state::<ArpState>().borrow().writer.get().count
}

/// Sets whether a client wants to know who asks.
pub(crate) fn watch(c: &Control, on: bool) {
    let state = c.state::<ArpState>();
    if state.borrow().writer.get().watched != on {
        update(c, |table| table.watched = on);
        state.borrow_mut().heard.clear();
    }
}

/// Number of bytes of an event: version, address, MAC address.
const EVENT_LEN: usize = 1 + 16 + 6;

/// Event of a host that asks for another one.
pub(crate) fn event(topic: Topic, ip: IpAddr, mac: MacAddr, port: SwIfIndex, at: u64) -> Event {
    let mut bytes = [0; EVENT_LEN];
    match ip {
        IpAddr::V4(ip) => bytes[1..5].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes[..17].copy_from_slice(&[&[1], &ip.octets()[..]].concat()),
    }
    bytes[17..].copy_from_slice(&mac.0);
    Event::new(topic, port, at, &bytes)
}

fn heard(c: &mut Control, event: &Event) {
    let Some(bytes) = event.bytes().first_chunk::<EVENT_LEN>() else { return };
    let ([version, rest @ ..], sw_if) = (bytes, event.sw_if);
    let (Some(ip), Some(mac)) = (rest.first_chunk::<16>(), rest.last_chunk::<6>()) else { return };
    let ip = match version {
        0 => IpAddr::from([ip[0], ip[1], ip[2], ip[3]]),
        _ => IpAddr::from(*ip),
    };
    if !interface::is_current(c, sw_if, event.at) {
        return;
    }
    let (key, now) = ((ip, MacAddr(*mac), sw_if), clock::now());
    {
        let state = c.state::<ArpState>();
        let mut state = state.borrow_mut();
        let is_recent = |at: &Instant| now.duration_since(*at) < QUIET;
        if state.heard.get(&key).is_some_and(is_recent) {
            return;
        }
        if state.heard.len() >= MAX_HEARD {
            state.heard.retain(|_, at| is_recent(at));
        }
        if state.heard.len() >= MAX_HEARD {
            state.lost += 1;
            return;
        }
        state.heard.insert(key, now);
    }
    let clients = c.state::<Clients>().borrow().clone();
    if !crate::api_types::notify_arp(c, &clients, key) {
        watch(c, false);
    }
}

/// Number of hosts that clients are not notified of, as too many asked.
pub(crate) fn lost(c: &Control) -> u64 {
    c.state::<ArpState>().borrow().lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::net::{Ipv4Addr, Ipv6Addr};

    proptest! {
        /// The table behaves like a map.
        #[test]
        fn addresses_are_those_last_set(
            steps in prop::collection::vec((0u16..3, 0u8..40, any::<bool>(), 0u8..4), 1..300),
        ) {
            let (mut table, mut model) = (ArpTable::default(), BTreeMap::new());
            // A zero seed lets many share a home.
            table.seed = 0;
            for (bridge, host, v6, mac) in steps {
                let ip = match v6 {
                    true => IpAddr::V6(Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(host))),
                    false => IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)),
                };
                let key = (bridge, ip);
                match mac {
                    0 => {
                        table.remove(key);
                        model.remove(&key);
                    }
                    n => {
                        let mac = MacAddr([2, 0, 0, 0, 0, n]);
                        prop_assert!(table.set(key, mac).is_ok());
                        model.insert(key, mac);
                    }
                }
                prop_assert_eq!(table.count, model.len());
            }
            for bridge in 0..3 {
                for host in 0..40 {
                    let ip = IpAddr::V4(Ipv4Addr::new(10, 0, 0, host));
                    let expected = model.get(&(bridge, ip)).copied();
                    prop_assert_eq!(table.find(bridge, ip), expected);
                }
            }
        }
    }

    #[test]
    fn a_full_table_says_so_and_finds_all() {
        let mut table = ArpTable::default();
        let ip = |n: usize| IpAddr::V4(Ipv4Addr::from_bits(n as u32));
        let mac = |n: usize| MacAddr([2, 0, 0, 0, (n >> 8) as u8, n as u8]);
        for n in 0..MAX_ARP_ENTRIES {
            assert!(table.set((1, ip(n)), mac(n)).is_ok());
        }
        assert!(matches!(table.set((2, ip(0)), mac(0)), Err(L2Error::ArpFull)));
        assert!(table.set((1, ip(7)), mac(8)).is_ok(), "what is there can change");
        assert_eq!((table.find(1, ip(7)), table.find(2, ip(0))), (Some(mac(8)), None));
        (0..MAX_ARP_ENTRIES).step_by(2).for_each(|n| table.remove((1, ip(n))));
        for n in (0..MAX_ARP_ENTRIES).filter(|n| *n != 7) {
            assert_eq!(table.find(1, ip(n)), (n % 2 == 1).then(|| mac(n)));
        }
    }
}
