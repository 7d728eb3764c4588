//! IPv4 addresses of interfaces, as workers read them.
//!
//! The IPv4 feature owns the addresses and passes them with
//! [`set_addresses`](crate::set_addresses). ARP needs them to decide which requests to answer,
//! which senders to learn, and which source address to use.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_device::SwIfIndex;
use thalweg_tables::hash::FastHash;
use thalweg_tables::{CowMap, CowTable};

/// An interface address with its prefix length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IfAddr {
    /// The router's own address.
    pub ip: Ipv4Addr,
    /// Prefix length, 0 to 32.
    pub len: u8,
}

impl IfAddr {
    fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.len.min(32))).unwrap_or(0)
    }

    /// Returns whether `ip` lies in the subnet.
    #[inline]
    pub fn covers(self, ip: Ipv4Addr) -> bool {
        (self.ip.to_bits() ^ ip.to_bits()) & self.mask() == 0
    }

    /// Returns whether `ip` is the subnet's lowest or highest address, which no host has. Subnets
    /// of one or two addresses have neither (RFC 3021).
    #[inline]
    pub fn is_edge(self, ip: Ipv4Addr) -> bool {
        let host = ip.to_bits() & !self.mask();
        self.len < 31 && self.covers(ip) && (host == 0 || host == !self.mask())
    }
}

/// Hosts on an interface by routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoutedPeers {
    /// Prefixes of routes to the interface, none in another, in order.
    attached: Vec<IfAddr>,
    /// Next hops named together with the interface, in order.
    next_hops: Vec<Ipv4Addr>,
}

impl RoutedPeers {
    pub(crate) fn new(mut attached: Vec<(Ipv4Addr, u8)>, mut next_hops: Vec<Ipv4Addr>) -> Self {
        attached.sort_unstable();
        let mut apart: Vec<IfAddr> = Vec::with_capacity(attached.len());
        for (ip, len) in attached {
            if apart.last().is_none_or(|wider| !wider.covers(ip)) {
                apart.push(IfAddr { ip, len });
            }
        }
        next_hops.sort_unstable();
        RoutedPeers { attached: apart, next_hops }
    }

    fn is_attached(&self, ip: Ipv4Addr) -> bool {
        let after = self.attached.partition_point(|a| a.ip <= ip);
        after.checked_sub(1).is_some_and(|at| self.attached[at].covers(ip))
    }
}

/// A range of addresses of other hosts that the router answers for (RFC 1027): table, first and
/// last address.
pub type ProxyRange = (u32, Ipv4Addr, Ipv4Addr);

/// A group of addresses of a feature such as NAT that the router answers for as for its own, and
/// where: an address means nothing on interfaces of other tables, and there attracts packets that
/// nobody translates. Addresses may be many.
#[derive(Clone, Debug, Default)]
struct Borrowed {
    addresses: CowMap<Ipv4Addr, (), FastHash>,
    /// Labels of the interfaces on which they are answered for.
    labels: CowMap<u64, (), FastHash>,
}

/// Addresses of all interfaces.
#[derive(Clone, Debug, Default)]
pub struct IfAddrs {
    rows: CowTable<Arc<[IfAddr]>>,
    /// Hosts that are peers whatever the addresses are.
    routed: CowTable<Option<Arc<RoutedPeers>>>,
    /// Further addresses that the router answers for.
    borrowed: BTreeMap<u64, Borrowed>,
    /// Labels of interfaces, by index: where that is.
    labels: CowMap<u32, Arc<[u64]>, FastHash>,
    /// Ranges of addresses of other hosts, and the interfaces on which they are answered for.
    ranges: Arc<[ProxyRange]>,
    proxies: CowMap<u32, (), FastHash>,
}

impl IfAddrs {
    /// Returns the addresses of an interface.
    #[inline]
    pub fn get(&self, sw_if: SwIfIndex) -> &[IfAddr] {
        self.rows.get(sw_if).map_or(&[], |r| r)
    }

    /// Returns whether the interface has this address.
    #[inline]
    pub fn is_own(&self, sw_if: SwIfIndex, ip: Ipv4Addr) -> bool {
        self.get(sw_if).iter().any(|a| a.ip == ip)
    }

    /// Returns whether the router answers for an address on an interface: it is the interface's
    /// own, or it lies in one of its subnets and was added there by a feature such as NAT.
    #[inline]
    pub fn answers_for(&self, sw_if: SwIfIndex, ip: Ipv4Addr) -> bool {
        self.is_own(sw_if, ip) || (!self.borrowed.is_empty() && self.is_borrowed(sw_if, ip))
    }

    fn is_borrowed(&self, sw_if: SwIfIndex, ip: Ipv4Addr) -> bool {
        let Some(labels) = self.labels.get(&sw_if.0) else { return false };
        let is_here = |b: &Borrowed| labels.iter().any(|label| b.labels.contains_key(label));
        let mut groups = self.borrowed.values().filter(|b| b.addresses.contains_key(&ip));
        groups.any(is_here) && self.get(sw_if).iter().any(|a| a.covers(ip))
    }

    /// Returns whether a host with this address may be reached directly: it lies in a subnet of the
    /// interface and is neither a subnet or broadcast address nor our own; or a route says so.
    #[inline]
    pub fn is_peer(&self, sw_if: SwIfIndex, ip: Ipv4Addr) -> bool {
        let rows = self.get(sw_if);
        let in_subnet = rows.iter().any(|a| a.covers(ip) && !a.is_edge(ip));
        (in_subnet || self.is_routed_peer(sw_if, ip)) && rows.iter().all(|a| a.ip != ip)
    }

    fn routed(&self, sw_if: SwIfIndex) -> Option<&RoutedPeers> {
        self.routed.get(sw_if)?.as_deref()
    }

    #[cold]
    fn is_routed_peer(&self, sw_if: SwIfIndex, ip: Ipv4Addr) -> bool {
        let found = |r: &RoutedPeers| r.is_attached(ip) || r.next_hops.binary_search(&ip).is_ok();
        self.routed(sw_if).is_some_and(found) && !self.get(sw_if).iter().any(|a| a.is_edge(ip))
    }

    /// Returns the length of the smallest subnet of the interface, or route to it, around an
    /// address.
    pub fn connected_len(&self, sw_if: SwIfIndex, ip: Ipv4Addr) -> Option<u8> {
        let attached = self.routed(sw_if).map_or(&[][..], |r| &r.attached);
        let all = self.get(sw_if).iter().chain(attached);
        all.filter(|a| a.covers(ip)).map(|a| a.len).max()
    }

    /// Returns whether a subnet of the interface or a route to it covers an address.
    pub fn is_connected(&self, sw_if: SwIfIndex, ip: Ipv4Addr) -> bool {
        self.get(sw_if).iter().any(|a| a.covers(ip))
            || self.routed(sw_if).is_some_and(|r| r.is_attached(ip))
    }

    /// Source address of requests for `ip`: the interface's address in the smallest subnet around
    /// it, else the first.
    pub fn source_for(&self, sw_if: SwIfIndex, ip: Ipv4Addr) -> Option<Ipv4Addr> {
        let rows = self.get(sw_if);
        let near = rows.iter().filter(|a| a.covers(ip)).max_by_key(|a| a.len);
        near.or(rows.first()).map(|a| a.ip)
    }

    /// Returns a copy with the addresses of one interface replaced.
    pub(crate) fn with(&self, sw_if: SwIfIndex, addrs: &[IfAddr]) -> IfAddrs {
        let mut rows = self.rows.clone();
        rows.set(sw_if, Arc::from(addrs));
        IfAddrs { rows, ..self.clone() }
    }

    /// Returns a copy with other hosts on an interface by routes; `None` if they are the same.
    pub(crate) fn with_routed(&self, sw_if: SwIfIndex, peers: RoutedPeers) -> Option<IfAddrs> {
        let empty = RoutedPeers::default();
        if *self.routed(sw_if).unwrap_or(&empty) == peers {
            return None;
        }
        let mut routed = self.routed.clone();
        routed.set(sw_if, (peers != empty).then(|| Arc::new(peers)));
        Some(IfAddrs { routed, ..self.clone() })
    }

    /// Returns a copy that answers for some addresses more, or no longer, each of a group.
    pub(crate) fn answering_for_these(&self, changes: &[(u64, Ipv4Addr, bool)]) -> IfAddrs {
        let mut new = self.clone();
        for (group, ip, answers) in changes {
            match answers {
                true => _ = new.borrowed.entry(*group).or_default().addresses.insert(*ip, ()),
                false => _ = new.borrowed.entry(*group).or_default().addresses.remove(ip),
            }
            new.end_if_empty(*group);
        }
        new
    }

    /// Returns a copy in which an interface has these labels.
    pub(crate) fn with_labels(&self, sw_if: SwIfIndex, labels: &[u64]) -> IfAddrs {
        let mut new = self.clone();
        match labels.is_empty() {
            true => _ = new.labels.remove(&sw_if.0),
            false => _ = new.labels.insert(sw_if.0, labels.into()),
        }
        new
    }

    /// Returns a copy that answers for some groups on interfaces with a label, or no longer there.
    pub(crate) fn answering_at(&self, changes: &[(u64, u64, bool)]) -> IfAddrs {
        let mut new = self.clone();
        for (group, label, answers) in changes {
            let of = new.borrowed.entry(*group).or_default();
            match answers {
                true => _ = of.labels.insert(*label, ()),
                false => _ = of.labels.remove(label),
            }
            new.end_if_empty(*group);
        }
        new
    }

    fn end_if_empty(&mut self, group: u64) {
        let is_empty = |of: &Borrowed| of.labels.is_empty() && of.addresses.is_empty();
        if self.borrowed.get(&group).is_some_and(is_empty) {
            self.borrowed.remove(&group);
        }
    }

    /// Returns a copy that answers for none but the addresses of interfaces.
    pub(crate) fn answering_for_none(&self) -> IfAddrs {
        IfAddrs { borrowed: BTreeMap::new(), labels: CowMap::default(), ..self.clone() }
    }

    /// Returns a copy with other ranges of addresses of other hosts.
    pub(crate) fn with_ranges(&self, ranges: Vec<ProxyRange>) -> IfAddrs {
        IfAddrs { ranges: ranges.into(), ..self.clone() }
    }

    /// Returns a copy that answers for these on an interface, or does not.
    pub(crate) fn with_proxy(&self, sw_if: SwIfIndex, on: bool) -> IfAddrs {
        let mut new = self.clone();
        match on {
            true => _ = new.proxies.insert(sw_if.0, ()),
            false => _ = new.proxies.remove(&sw_if.0),
        }
        new
    }

    /// Returns whether the router answers on an interface for hosts of a range of addresses;
    /// `table` is that of the interface.
    pub fn is_proxied(&self, sw_if: SwIfIndex, table: impl Fn() -> u32, ip: Ipv4Addr) -> bool {
        if self.proxies.is_empty() || !self.proxies.contains_key(&sw_if.0) {
            return false;
        }
        let mut ranges =
            self.ranges.iter().filter(|(_, first, last)| (first..=last).contains(&&ip));
        ranges.any(|(of, ..)| *of == table())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(s: &str) -> Ipv4Addr {
        s.parse().unwrap()
    }

    fn one(s: &str, len: u8) -> IfAddr {
        IfAddr { ip: ip(s), len }
    }

    #[test]
    fn subnets_of_every_size() {
        let a = one("10.0.0.1", 24);
        assert!(a.covers(ip("10.0.0.255")) && a.is_edge(ip("10.0.0.255")));
        assert!(a.is_edge(ip("10.0.0.0")) && !a.is_edge(ip("10.0.0.7")));
        assert!(!a.covers(ip("10.0.1.0")) && !a.is_edge(ip("10.0.1.0")));
        let p = one("10.0.0.1", 31);
        assert!(p.covers(ip("10.0.0.0")) && !p.is_edge(ip("10.0.0.0")));
        assert!(!one("10.0.0.1", 32).covers(ip("10.0.0.0")));
        assert!(one("10.0.0.1", 0).covers(ip("255.1.2.3")));
    }

    #[test]
    fn the_nearest_address_asks() {
        let all = IfAddrs::default().with(SwIfIndex(3), &[one("10.0.0.1", 8), one("10.1.0.1", 16)]);
        assert_eq!(all.source_for(SwIfIndex(3), ip("10.1.2.3")), Some(ip("10.1.0.1")));
        assert_eq!(all.source_for(SwIfIndex(3), ip("10.2.2.3")), Some(ip("10.0.0.1")));
        assert_eq!(all.source_for(SwIfIndex(3), ip("192.0.2.1")), Some(ip("10.0.0.1")));
        assert_eq!(all.source_for(SwIfIndex(2), ip("10.1.2.3")), None);
        assert!(
            all.is_own(SwIfIndex(3), ip("10.1.0.1")) && !all.is_peer(SwIfIndex(3), ip("10.1.0.1"))
        );
        assert!(
            all.is_peer(SwIfIndex(3), ip("10.200.0.0"))
                && !all.is_peer(SwIfIndex(3), ip("11.0.0.1"))
        );
        assert!(all.with(SwIfIndex(3), &[]).get(SwIfIndex(3)).is_empty());
    }

    #[test]
    fn lent_addresses_are_answered_for_where_they_belong() {
        let all = IfAddrs::default()
            .with(SwIfIndex(1), &[one("192.0.2.1", 24)])
            .with(SwIfIndex(2), &[one("10.0.0.1", 8)])
            .with(SwIfIndex(3), &[one("192.0.2.2", 24)]);
        let all = all.answering_for_these(&[
            (0, ip("192.0.2.7"), true),
            (0, ip("192.0.2.8"), true),
            (1, ip("192.0.2.66"), true),
        ]);
        assert!(!all.answers_for(SwIfIndex(1), ip("192.0.2.7")), "no interface so far");
        let on = [(1, &[5][..]), (2, &[5, 6]), (3, &[6]), (4, &[])];
        let all = on.iter().fold(all, |all, (n, labels)| all.with_labels(SwIfIndex(*n), labels));
        assert!(!all.answers_for(SwIfIndex(1), ip("192.0.2.7")), "no label so far");
        let all = all.answering_at(&[(0, 5, true), (1, 6, true), (9, 5, true), (9, 5, false)]);
        assert_eq!(all.borrowed.keys().collect::<Vec<_>>(), [&0, &1]);
        let changes = [(0, ip("192.0.2.9"), true), (0, ip("192.0.2.8"), false)];
        let all = all.answering_for_these(&changes);
        let answered = |n: u32, address: &str| all.answers_for(SwIfIndex(n), ip(address));
        assert!(answered(1, "192.0.2.9") && answered(1, "192.0.2.1"));
        assert!(!answered(2, "192.0.2.9"), "no subnet around it");
        assert!(!answered(1, "192.0.2.8"));
        // The same subnet, in another table.
        assert!(!answered(3, "192.0.2.9") && answered(3, "192.0.2.66"));
        assert!(!answered(1, "192.0.2.66"));
        assert!(!all.is_own(SwIfIndex(1), ip("192.0.2.9")));
        assert!(all.with(SwIfIndex(4), &[]).answers_for(SwIfIndex(1), ip("192.0.2.7")));
        assert!(!all.with_labels(SwIfIndex(1), &[]).answers_for(SwIfIndex(1), ip("192.0.2.7")));
        assert!(!all.answering_at(&[(0, 5, false)]).answers_for(SwIfIndex(1), ip("192.0.2.7")));
        let none = all.answering_for_none();
        assert!(none.borrowed.is_empty() && none.labels.is_empty());
    }

    #[test]
    fn ranges_are_answered_for_in_their_table() {
        let all = IfAddrs::default();
        let (on, table) = (SwIfIndex(1), || 7);
        assert!(!all.is_proxied(on, table, ip("10.0.0.5")));
        let ranges = vec![(7, ip("10.0.0.5"), ip("10.0.0.9")), (0, ip("10.1.0.0"), ip("10.1.0.0"))];
        let all = all.with_ranges(ranges).with_proxy(on, true);
        for (address, proxied) in
            [("10.0.0.4", false), ("10.0.0.5", true), ("10.0.0.9", true), ("10.0.0.10", false)]
        {
            assert_eq!(all.is_proxied(on, table, ip(address)), proxied, "{address}");
        }
        assert!(
            !all.is_proxied(on, table, ip("10.1.0.0")) && all.is_proxied(on, || 0, ip("10.1.0.0"))
        );
        assert!(!all.is_proxied(SwIfIndex(2), table, ip("10.0.0.5")));
        assert!(all.with(on, &[]).is_proxied(on, table, ip("10.0.0.5")));
        assert!(!all.with_proxy(on, false).is_proxied(on, table, ip("10.0.0.5")));
    }

    proptest! {
        #[test]
        fn hosts_by_routes_agree_with_a_plain_list(
            nets in prop::collection::vec((0u32..64, 26u8..=32), 0..8),
            hops in prop::collection::vec(0u32..64, 0..4), asked in 0u32..64,
        ) {
            let at = |n: u32| Ipv4Addr::from_bits(0xc000_0200 | n);
            let nets: Vec<(Ipv4Addr, u8)> = nets.into_iter().map(|(n, len)| {
                (Ipv4Addr::from_bits(at(n).to_bits() & (u32::MAX << (32 - len))), len)
            }).collect();
            let hops: Vec<Ipv4Addr> = hops.into_iter().map(at).collect();
            let covered = nets.iter().any(|(ip, len)| IfAddr { ip: *ip, len: *len }.covers(at(asked)));
            let named = hops.contains(&at(asked));
            let peers = RoutedPeers::new(nets, hops);
            let own = one("198.51.100.1", 32);
            let all = IfAddrs::default().with(SwIfIndex(1), &[own]);
            let all = all.with_routed(SwIfIndex(1), peers).unwrap_or(all);
            prop_assert_eq!(all.is_peer(SwIfIndex(1), at(asked)), covered || named);
            prop_assert_eq!(all.is_connected(SwIfIndex(1), at(asked)), covered);
            prop_assert!(!all.is_peer(SwIfIndex(2), at(asked)) && !all.is_peer(SwIfIndex(1), own.ip));
        }

        #[test]
        fn edges_are_covered(a: u32, b: u32, len in 0u8..=32) {
            let a = IfAddr { ip: a.into(), len };
            let b = Ipv4Addr::from(b);
            prop_assert!(a.covers(a.ip));
            prop_assert!(!a.is_edge(b) || a.covers(b));
        }
    }
}
