//! ARP gets the addresses of interfaces and the hosts on them by routes, and tables get a host
//! route for each neighbour.

use std::net::{IpAddr, Ipv4Addr};
use thalweg_device::{InterfaceEvent, SwIfIndex};
use thalweg_feat_arp as arp;
use thalweg_feat_ip::{AddressesChanged, Ip4, RoutedPeersChanged, Version, table};
use thalweg_feat_neighbor::NeighborChange;
use thalweg_graph::Control;

/// Asks for the only other host of each subnet of two addresses, as VPP does.
fn probe_peers(c: &mut Control, sw_if: SwIfIndex) {
    let all = c.state::<Ip4>().borrow().addresses(sw_if).to_vec();
    for address in all.into_iter().filter(|a| a.len == 31) {
        thalweg_feat_neighbor::probe(c, sw_if, Ipv4Addr::from_bits(address.addr ^ 1).into());
    }
}

pub(crate) fn init(c: &mut Control) {
    c.subscribe(|c, change: &AddressesChanged| {
        if change.version == Version::V4 {
            let list: Vec<_> = {
                let ip4 = c.state::<Ip4>();
                let ip4 = ip4.borrow();
                let all = ip4.usable_addresses(change.sw_if);
                all.map(|a| (Ipv4Addr::from_bits(a.addr), a.len)).collect()
            };
            arp::set_addresses(c, change.sw_if, &list);
            probe_peers(c, change.sw_if);
        }
    });
    c.subscribe(|c, event: &InterfaceEvent| {
        if let InterfaceEvent::State(sw_if) = *event {
            probe_peers(c, sw_if);
        }
    });
    c.subscribe(|c, change: &RoutedPeersChanged| {
        if change.version == Version::V4 {
            let peers = c.state::<Ip4>().borrow().routed_peers(change.sw_if);
            let attached = peers.attached.iter().map(|p| (Ipv4Addr::from_bits(p.addr()), p.len()));
            let next_hops = peers.next_hops.iter().map(|h| Ipv4Addr::from_bits(*h));
            arp::set_routed_peers(c, change.sw_if, attached.collect(), next_hops.collect());
        }
    });
    c.subscribe(|c, change: &NeighborChange| {
        if let IpAddr::V4(ip) = change.ip {
            let (written, wanted) = (change.is_static, change.fib_entry);
            let rival = table::set_neighbor_route(c, change.sw_if, ip.to_bits(), written, wanted);
            if let Some(i) = rival {
                thalweg_feat_neighbor::confirm(c, i, change.ip);
            }
        }
    });
}
