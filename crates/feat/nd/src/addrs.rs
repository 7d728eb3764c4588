//! IPv6 addresses of interfaces, as workers read them.
//!
//! The IPv6 feature owns the addresses and passes them with
//! [`set_addresses`](crate::set_addresses). Neighbour discovery needs them to decide which
//! solicitations to answer, which senders to learn, and which source address to use.

use std::net::Ipv6Addr;
use std::sync::Arc;
use thalweg_device::SwIfIndex;
use thalweg_tables::hash::FastHash;
use thalweg_tables::{CowMap, CowTable};
use thalweg_wire::nd::solicited_node;

/// An interface address, or a prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct IfAddr {
    /// The address.
    pub ip: Ipv6Addr,
    /// Prefix length, 0 to 128.
    pub len: u8,
}

impl IfAddr {
    /// Returns whether `ip` lies in the subnet.
    #[inline]
    pub fn covers(self, ip: Ipv6Addr) -> bool {
        let differ = self.ip.to_bits() ^ ip.to_bits();
        differ.checked_shr(128 - u32::from(self.len.min(128))).unwrap_or(0) == 0
    }
}

/// Hosts on an interface by routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoutedPeers {
    /// Prefixes of routes to the interface, none in another, in order.
    attached: Vec<IfAddr>,
    /// Next hops named together with the interface, in order.
    next_hops: Vec<Ipv6Addr>,
}

impl RoutedPeers {
    pub(crate) fn new(mut attached: Vec<IfAddr>, mut next_hops: Vec<Ipv6Addr>) -> Self {
        attached.sort_unstable();
        let mut apart: Vec<IfAddr> = Vec::with_capacity(attached.len());
        for prefix in attached {
            if apart.last().is_none_or(|wider| !wider.covers(prefix.ip)) {
                apart.push(prefix);
            }
        }
        next_hops.sort_unstable();
        RoutedPeers { attached: apart, next_hops }
    }

    fn is_attached(&self, ip: Ipv6Addr) -> bool {
        let after = self.attached.partition_point(|a| a.ip <= ip);
        after.checked_sub(1).is_some_and(|at| self.attached[at].covers(ip))
    }
}

/// Addresses and state of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    link_local: Option<Ipv6Addr>,
    addrs: Box<[IfAddr]>,
    /// Addresses that are still being tested.
    tentative: Box<[Ipv6Addr]>,
    /// Addresses that other hosts have.
    duplicate: Box<[Ipv6Addr]>,
    /// The router advertises itself.
    router: bool,
    /// Its route table.
    table: u32,
}

/// The address of another host that the router answers for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Proxy {
    /// The address.
    pub ip: Ipv6Addr,
    /// The interface where the host is.
    pub sw_if: SwIfIndex,
    /// The route table of that interface: hosts of others are not meant.
    pub table: u32,
}

impl Row {
    fn has(&self, ip: Ipv6Addr) -> bool {
        self.link_local == Some(ip) || self.addrs.iter().any(|a| a.ip == ip)
    }

    fn is_usable(&self, ip: Ipv6Addr) -> bool {
        !self.tentative.contains(&ip) && !self.duplicate.contains(&ip)
    }
}

/// Addresses of all interfaces.
#[derive(Clone, Debug, Default)]
pub struct IfAddrs {
    rows: CowTable<Option<Arc<Row>>>,
    /// Hosts that are peers whatever the addresses are.
    routed: CowTable<Option<Arc<RoutedPeers>>>,
    /// Hosts that the router answers for, by their table.
    proxied: CowMap<u32, Proxied, FastHash>,
}

/// Hosts of a table by the last bits of their addresses, which name a solicited-node group: each
/// with the interface where it is.
type Proxied = CowMap<u32, Arc<[(Ipv6Addr, SwIfIndex)]>, FastHash>;

/// The last 24 bits, which the solicited-node group has (RFC 4291 section 2.7.1).
fn low(ip: Ipv6Addr) -> u32 {
    ip.to_bits() as u32 & 0xff_ffff
}

impl IfAddrs {
    #[inline]
    fn row(&self, sw_if: SwIfIndex) -> Option<&Row> {
        self.rows.get(sw_if)?.as_deref()
    }

    /// Returns the addresses of an interface, without its link-local one.
    #[inline]
    pub fn get(&self, sw_if: SwIfIndex) -> &[IfAddr] {
        self.row(sw_if).map_or(&[], |row| &row.addrs)
    }

    /// Returns the link-local address of an interface; `None` if it does not speak IPv6.
    #[inline]
    pub fn link_local(&self, sw_if: SwIfIndex) -> Option<Ipv6Addr> {
        self.row(sw_if)?.link_local
    }

    /// Returns whether the interface has this address, and no other host does.
    #[inline]
    pub fn is_own(&self, sw_if: SwIfIndex, ip: Ipv6Addr) -> bool {
        self.row(sw_if).is_some_and(|row| row.has(ip) && !row.duplicate.contains(&ip))
    }

    /// Returns whether an address of the interface is still being tested (RFC 4862 section 5.4).
    #[inline]
    pub fn is_tentative(&self, sw_if: SwIfIndex, ip: Ipv6Addr) -> bool {
        self.row(sw_if).is_some_and(|row| row.tentative.contains(&ip))
    }

    /// Returns whether an address of the interface may be used: it has been tested, and no other
    /// host has it.
    #[inline]
    pub fn is_usable(&self, sw_if: SwIfIndex, ip: Ipv6Addr) -> bool {
        self.row(sw_if).is_some_and(|row| row.is_usable(ip))
    }

    /// Returns whether the router advertises itself on an interface.
    #[inline]
    pub fn is_router(&self, sw_if: SwIfIndex) -> bool {
        self.row(sw_if).is_some_and(|row| row.router)
    }

    /// Returns whether the router answers on an interface for another host's address: in that
    /// host's table, where it is not.
    #[inline]
    pub fn is_proxied(&self, sw_if: SwIfIndex, ip: Ipv6Addr) -> bool {
        !self.proxied.is_empty() && self.is_proxied_here(sw_if, ip)
    }

    #[cold]
    fn is_proxied_here(&self, sw_if: SwIfIndex, ip: Ipv6Addr) -> bool {
        let of_it = self.proxied_as(sw_if, low(ip)).iter().filter(|(host, _)| *host == ip);
        let mut of_it = of_it.peekable();
        of_it.peek().is_some() && of_it.all(|(_, at)| *at != sw_if)
    }

    /// Hosts of an interface's table whose addresses have these last bits.
    fn proxied_as(&self, sw_if: SwIfIndex, low: u32) -> &[(Ipv6Addr, SwIfIndex)] {
        let found = self.proxied.get(&self.table(sw_if)).and_then(|all| all.get(&low));
        found.map_or(&[], |all| all)
    }

    fn table(&self, sw_if: SwIfIndex) -> u32 {
        self.row(sw_if).map_or(0, |row| row.table)
    }

    /// The addresses that the router may answer for on an interface, one for each group.
    fn proxied(&self, sw_if: SwIfIndex) -> impl Iterator<Item = Ipv6Addr> + '_ {
        let all = self.proxied.get(&self.table(sw_if)).into_iter().flat_map(CowMap::iter);
        all.filter_map(move |(_, hosts)| hosts.iter().find(|(_, at)| *at != sw_if).map(|h| h.0))
    }

    /// Returns whether the router listens to a group on an interface: that of all nodes, of all
    /// routers, of MLD's routers, and those in which its addresses are solicited.
    pub fn has_joined(&self, sw_if: SwIfIndex, group: Ipv6Addr) -> bool {
        let Some(row) = self.row(sw_if).filter(|row| row.link_local.is_some()) else {
            return false;
        };
        match group.segments() {
            // All nodes and all routers of the interface and of the link.
            [0xff01 | 0xff02, 0, 0, 0, 0, 0, 0, 1 | 2] | [0xff02, 0, 0, 0, 0, 0, 0, 0x16] => true,
            [0xff02, 0, 0, 0, 0, 1, 0xff00..=0xffff, _] => {
                let mut own = row.addrs.iter().map(|a| a.ip).chain(row.link_local);
                own.any(|ip| low(ip) == low(group))
                    || self.proxied_as(sw_if, low(group)).iter().any(|(_, at)| *at != sw_if)
            }
            _ => false,
        }
    }

    /// Returns the groups of the link that the router listens to on an interface, in order: see
    /// [`has_joined`](Self::has_joined).
    pub fn groups(&self, sw_if: SwIfIndex) -> Vec<Ipv6Addr> {
        let Some(row) = self.row(sw_if).filter(|row| row.link_local.is_some()) else {
            return Vec::new();
        };
        let own = row.addrs.iter().map(|a| a.ip).chain(row.link_local);
        let fixed = [1, 2, 0x16].map(|n| Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, n));
        let all = own.chain(self.proxied(sw_if)).map(solicited_node).chain(fixed);
        let mut all: Vec<Ipv6Addr> = all.collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns whether a host with this address may be reached directly: a link-local one, one in a
    /// subnet of the interface, or one by a route; not our own.
    #[inline]
    pub fn is_peer(&self, sw_if: SwIfIndex, ip: Ipv6Addr) -> bool {
        let Some(row) = self.row(sw_if) else { return false };
        let near = ip.is_unicast_link_local() && row.link_local.is_some()
            || row.addrs.iter().any(|a| a.covers(ip))
            || self.is_routed_peer(sw_if, ip);
        near && !self.is_own(sw_if, ip) && !ip.is_multicast() && !ip.is_unspecified()
    }

    fn routed(&self, sw_if: SwIfIndex) -> Option<&RoutedPeers> {
        self.routed.get(sw_if)?.as_deref()
    }

    #[cold]
    fn is_routed_peer(&self, sw_if: SwIfIndex, ip: Ipv6Addr) -> bool {
        let found = |r: &RoutedPeers| r.is_attached(ip) || r.next_hops.binary_search(&ip).is_ok();
        self.routed(sw_if).is_some_and(found)
    }

    /// Returns the length of the smallest subnet of the interface, or route to it, around an
    /// address.
    pub fn connected_len(&self, sw_if: SwIfIndex, ip: Ipv6Addr) -> Option<u8> {
        let attached = self.routed(sw_if).map_or(&[][..], |r| &r.attached);
        let all = self.get(sw_if).iter().chain(attached);
        all.filter(|a| a.covers(ip)).map(|a| a.len).max()
    }

    /// Returns whether a subnet of the interface or a route to it covers an address.
    pub fn is_connected(&self, sw_if: SwIfIndex, ip: Ipv6Addr) -> bool {
        !ip.is_unicast_link_local() && self.connected_len(sw_if, ip).is_some()
    }

    /// Returns the source of the router's messages to a host by an interface: the address in the
    /// smallest subnet around it, else the first one; the link-local one for hosts of the link.
    pub fn source_for(&self, sw_if: SwIfIndex, ip: Ipv6Addr) -> Option<Ipv6Addr> {
        let row = self.row(sw_if)?;
        let usable = |ip: &Ipv6Addr| row.is_usable(*ip);
        if ip.is_unicast_link_local() {
            return row.link_local.filter(usable);
        }
        let all = || row.addrs.iter().filter(|a| usable(&a.ip));
        let near = all().filter(|a| a.covers(ip)).max_by_key(|a| a.len);
        near.or(all().next()).map(|a| a.ip)
    }

    /// Returns a copy with the addresses of one interface replaced; `None` if they are the same.
    pub(crate) fn with(
        &self,
        sw_if: SwIfIndex,
        link_local: Option<Ipv6Addr>,
        addrs: &[IfAddr],
    ) -> Option<IfAddrs> {
        self.change(sw_if, |row| (row.link_local, row.addrs) = (link_local, addrs.into()))
    }

    /// Returns a copy with other addresses of an interface that may not be used, those that are
    /// being tested and those that other hosts have; `None` if they are the same.
    pub(crate) fn with_unusable(
        &self,
        sw_if: SwIfIndex,
        tentative: &[Ipv6Addr],
        duplicate: &[Ipv6Addr],
    ) -> Option<IfAddrs> {
        self.change(sw_if, |row| {
            (row.tentative, row.duplicate) = (tentative.into(), duplicate.into());
        })
    }

    /// Returns a copy in which the router advertises itself on an interface, or does not; `None` if
    /// it is the same.
    pub(crate) fn with_router(&self, sw_if: SwIfIndex, router: bool) -> Option<IfAddrs> {
        self.change(sw_if, |row| row.router = router)
    }

    /// Returns a copy with an interface in another route table; `None` if it is the same.
    pub(crate) fn with_table(&self, sw_if: SwIfIndex, table: u32) -> Option<IfAddrs> {
        self.change(sw_if, |row| row.table = table)
    }

    fn change(&self, sw_if: SwIfIndex, change: impl FnOnce(&mut Row)) -> Option<IfAddrs> {
        let empty = Row::default();
        let old = self.row(sw_if).unwrap_or(&empty);
        let mut row = old.clone();
        change(&mut row);
        if *old == row {
            return None;
        }
        let mut rows = self.rows.clone();
        rows.set(sw_if, (row != empty).then(|| Arc::new(row)));
        Some(IfAddrs { rows, ..self.clone() })
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

    /// Returns a copy that answers for some hosts more, or no longer.
    pub(crate) fn with_proxies(&self, changes: &[(Proxy, bool)]) -> IfAddrs {
        let mut proxied = self.proxied.clone();
        for (Proxy { ip, sw_if, table }, is) in changes {
            let mut of_table = proxied.get(table).cloned().unwrap_or_default();
            let before = of_table.get(&low(*ip)).map_or(&[][..], |all| all);
            let others = before.iter().filter(|host| **host != (*ip, *sw_if));
            let after = others.copied().chain(is.then_some((*ip, *sw_if)));
            match after.collect::<Arc<[_]>>() {
                none if none.is_empty() => _ = of_table.remove(&low(*ip)),
                some => _ = of_table.insert(low(*ip), some),
            }
            match of_table.is_empty() {
                true => _ = proxied.remove(table),
                false => _ = proxied.insert(*table, of_table),
            }
        }
        IfAddrs { proxied, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(s: &str) -> Ipv6Addr {
        s.parse().unwrap()
    }

    fn one(s: &str, len: u8) -> IfAddr {
        IfAddr { ip: ip(s), len }
    }

    const ON: SwIfIndex = SwIfIndex(3);

    fn all() -> IfAddrs {
        let addrs = [one("2001:db8::1", 64), one("2001:db8:1::1", 48)];
        IfAddrs::default().with(ON, Some(ip("fe80::1:2")), &addrs).unwrap()
    }

    #[test]
    fn the_nearest_address_is_the_source() {
        let all = all();
        for (to, source) in [
            ("2001:db8::9", "2001:db8::1"),
            ("2001:db8:1:7::9", "2001:db8:1::1"),
            ("2001:db9::", "2001:db8::1"),
            ("fe80::9", "fe80::1:2"),
        ] {
            assert_eq!(all.source_for(ON, ip(to)), Some(ip(source)), "{to}");
        }
        assert_eq!(all.source_for(SwIfIndex(2), ip("2001:db8::9")), None);
    }

    #[test]
    fn peers_are_of_the_link() {
        let all = all();
        for (host, peer, connected) in [
            ("2001:db8::9", true, true),
            ("2001:db8::1", false, true),
            ("fe80::9", true, false),
            ("fe80::1:2", false, false),
            ("2001:db9::1", false, false),
            ("ff02::1", false, false),
            ("::", false, false),
        ] {
            assert_eq!(all.is_peer(ON, ip(host)), peer, "{host}");
            assert_eq!(all.is_connected(ON, ip(host)), connected, "{host}");
            assert!(!all.is_peer(SwIfIndex(2), ip(host)));
        }
        let routed = RoutedPeers::new(vec![one("2001:db9::", 64)], vec![ip("2001:dba::7")]);
        let all = all.with_routed(ON, routed.clone()).unwrap();
        assert!(all.with_routed(ON, routed).is_none());
        assert!(all.is_peer(ON, ip("2001:db9::1")) && all.is_connected(ON, ip("2001:db9::1")));
        assert!(all.is_peer(ON, ip("2001:dba::7")) && !all.is_connected(ON, ip("2001:dba::7")));
    }

    #[test]
    fn groups_are_joined_by_address() {
        let proxied = Proxy { ip: ip("2001:db8::aa:bbcc"), sw_if: SwIfIndex(9), table: 0 };
        let all = all().with_proxies(&[(proxied, true)]);
        for (group, joined) in [
            ("ff02::1", true),
            ("ff02::2", true),
            ("ff02::16", true),
            ("ff02::5", false),
            ("ff05::1", false),
            ("ff02::1:ff01:2", true),
            ("ff02::1:ff00:1", true),
            ("ff02::1:ffaa:bbcc", true),
            ("ff02::1:ff00:3", false),
        ] {
            assert_eq!(all.has_joined(ON, ip(group)), joined, "{group}");
            assert_eq!(all.groups(ON).contains(&ip(group)), joined, "{group}");
            assert!(!all.has_joined(SwIfIndex(1), ip(group)));
        }
        assert_eq!((all.groups(ON).len(), all.groups(SwIfIndex(1)).len()), (6, 0));
        let proxied = ip("2001:db8::aa:bbcc");
        assert!(all.is_proxied(ON, proxied) && !all.is_proxied(SwIfIndex(9), proxied));
        assert!(!all.is_proxied(ON, ip("2001:db8::aa:bbcd")));
    }

    #[test]
    fn hosts_are_answered_for_in_their_table() {
        let (host, there) = (ip("2001:db8::aa:bbcc"), SwIfIndex(9));
        let group = solicited_node(host);
        let of = |table| {
            let proxied = Proxy { ip: host, sw_if: there, table };
            all().with_proxies(&[(proxied, true)])
        };
        let here = |all: &IfAddrs| {
            let joined = all.has_joined(ON, group);
            assert_eq!(all.groups(ON).contains(&group), joined);
            assert_eq!(all.is_proxied(ON, host), joined);
            joined
        };
        assert!(here(&of(0)) && !here(&of(7)));
        let moved = |all: IfAddrs| all.with_table(ON, 7).unwrap();
        assert!(!here(&moved(of(0))) && here(&moved(of(7))));
        // A host of that address in two tables is in each where it is.
        let proxied =
            [(there, 7), (ON, 0)].map(|(sw_if, table)| (Proxy { ip: host, sw_if, table }, true));
        let both = all().with_proxies(&proxied);
        let none = both.with_proxies(&proxied.map(|(proxy, _)| (proxy, false)));
        assert!(!here(&both) && here(&moved(both)));
        assert!(!here(&none) && none.proxied.is_empty());
        assert!(of(0).with_table(ON, 0).is_none());
    }

    #[test]
    fn hosts_with_the_same_last_bits_share_a_group() {
        let [one, other] = ["2001:db8::aa:bbcc", "2001:db8:7::aa:bbcc"].map(ip);
        let proxy = |ip, sw_if| Proxy { ip, sw_if, table: 0 };
        let here = proxy(one, ON);
        let there = proxy(other, SwIfIndex(9));
        let all = all().with_proxies(&[(here, true), (here, true), (there, true)]);
        assert!(!all.is_proxied(ON, one) && all.is_proxied(ON, other));
        assert!(all.has_joined(ON, solicited_node(one)) && all.groups(ON).len() == 6);
        let all = all.with_proxies(&[(there, false), (there, false)]);
        assert!(!all.is_proxied(ON, other) && all.is_proxied(SwIfIndex(9), one));
        assert!(!all.has_joined(ON, solicited_node(one)) && all.groups(ON).len() == 5);
    }

    #[test]
    fn tentative_addresses_are_no_source() {
        let tested = [ip("2001:db8::1"), ip("fe80::1:2")];
        let all = all().with_unusable(ON, &tested, &[]).unwrap();
        assert_eq!(all.source_for(ON, ip("2001:db8::9")), Some(ip("2001:db8:1::1")));
        assert_eq!(all.source_for(ON, ip("fe80::9")), None);
        assert!(all.is_tentative(ON, ip("2001:db8::1")) && all.is_own(ON, ip("2001:db8::1")));
        // Other addresses leave what else is known of the interface.
        let all = all.with_router(ON, true).unwrap().with(ON, None, &[]).unwrap();
        assert!(all.is_router(ON) && all.is_tentative(ON, ip("2001:db8::1")));
        let none = all.with_router(ON, false).unwrap().with_unusable(ON, &[], &[]).unwrap();
        assert!(none.with_unusable(ON, &[], &[]).is_none() && none.row(ON).is_none());
    }

    #[test]
    fn an_address_that_another_host_has_is_a_peers() {
        let taken = ip("2001:db8::1");
        let all = all().with_unusable(ON, &[], &[taken]).unwrap();
        assert!(!all.is_own(ON, taken) && all.is_peer(ON, taken) && !all.is_usable(ON, taken));
        assert!(!all.is_tentative(ON, taken));
        assert_eq!(all.source_for(ON, ip("2001:db8::9")), Some(ip("2001:db8:1::1")));
    }

    proptest! {
        #[test]
        fn hosts_by_routes_agree_with_a_plain_list(
            nets in prop::collection::vec((0u128..64, 122u8..=128), 0..8), asked in 0u128..64,
        ) {
            let at = |n: u128| Ipv6Addr::from_bits(0x2001_0db8 << 96 | n);
            let nets: Vec<IfAddr> = nets.into_iter().map(|(n, len)| {
                let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
                IfAddr { ip: Ipv6Addr::from_bits(at(n).to_bits() & mask), len }
            }).collect();
            let covered = nets.iter().any(|a| a.covers(at(asked)));
            let peers = RoutedPeers::new(nets, Vec::new());
            prop_assert_eq!(peers.is_attached(at(asked)), covered);
        }
    }
}
