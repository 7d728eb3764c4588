//! ARP and the addresses of interfaces: it gets them, and they get host routes for what it resolves.

use std::net::Ipv4Addr;
use thalweg_feat_arp as arp;
use thalweg_feat_ip::{Ip4, table};
use thalweg_graph::Control;

pub(crate) fn init(c: &mut Control) {
    c.state::<Ip4>().borrow_mut().on_address_change(|c, sw_if| {
        let ip4 = c.state::<Ip4>();
        let each = ip4.borrow().addresses(sw_if).to_vec();
        let list: Vec<_> = each.iter().map(|a| (Ipv4Addr::from_bits(a.addr), a.len)).collect();
        arp::set_addresses(c, sw_if, &list);
    });
    c.state::<arp::Neighbors>().borrow_mut().on_change(|c, change| {
        table::set_neighbor_route(c, change.sw_if, change.ip.to_bits(), change.fib_entry);
    });
}
