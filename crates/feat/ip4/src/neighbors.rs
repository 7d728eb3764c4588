//! ARP gets the addresses of interfaces, and tables get a host route for each neighbour.

use std::net::{IpAddr, Ipv4Addr};
use thalweg_feat_arp as arp;
use thalweg_feat_ip::{AddressesChanged, Ip4, Version, table};
use thalweg_feat_neighbor::NeighborChange;
use thalweg_graph::Control;

pub(crate) fn init(c: &mut Control) {
    c.subscribe(|c, change: &AddressesChanged| {
        if change.version == Version::V4 {
            let each = c.state::<Ip4>().borrow().addresses(change.sw_if).to_vec();
            let list: Vec<_> = each.iter().map(|a| (Ipv4Addr::from_bits(a.addr), a.len)).collect();
            arp::set_addresses(c, change.sw_if, &list);
        }
    });
    c.subscribe(|c, change: &NeighborChange| {
        if let IpAddr::V4(ip) = change.ip {
            table::set_neighbor_route(c, change.sw_if, ip.to_bits(), change.fib_entry);
        }
    });
}
