//! Neighbour discovery gets the addresses of interfaces and the hosts on them by routes, and tables
//! get a host route for each neighbour.

use std::net::{IpAddr, Ipv6Addr};
use thalweg_feat_ip::{Ip6, RoutedPeersChanged, Version, table};
use thalweg_feat_nd as nd;
use thalweg_feat_neighbor::NeighborChange;
use thalweg_graph::Control;

pub(crate) fn init(c: &mut Control) {
    c.subscribe(|c, change: &RoutedPeersChanged| {
        if change.version == Version::V6 {
            let peers = c.state::<Ip6>().borrow().routed_peers(change.sw_if);
            let prefix = |p: &thalweg_tables::Ipv6Prefix| nd::IfAddr {
                ip: Ipv6Addr::from_bits(p.addr()),
                len: p.len(),
            };
            let attached = peers.attached.iter().map(prefix);
            let next_hops = peers.next_hops.iter().map(|h| Ipv6Addr::from_bits(*h));
            nd::set_routed_peers(c, change.sw_if, attached.collect(), next_hops.collect());
        }
    });
    c.subscribe(|c, change: &NeighborChange| {
        if let IpAddr::V6(ip) = change.ip {
            let (written, wanted) = (change.is_static, change.fib_entry);
            let rival = table::set_neighbor_route(c, change.sw_if, ip.to_bits(), written, wanted);
            if let Some(i) = rival {
                thalweg_feat_neighbor::confirm(c, i, change.ip);
            }
        }
    });
}
