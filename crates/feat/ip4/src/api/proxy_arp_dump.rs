//! `proxy_arp_dump`: lists the ranges of proxy ARP.

use crate::message_types::{ARP, ProxyArp, ProxyArpDetails, ProxyArpDump};
use crate::proxy_arp;
use thalweg_api::types::Ip4Address;
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, ProxyArpDump, ProxyArpDetails> = Dump::new(&ARP, handle);

fn handle(c: &mut Control, _: ProxyArpDump, out: &mut Details<ProxyArpDetails>) {
    for range in proxy_arp::ranges(c) {
        let [low, hi] = [range.first, range.last].map(|a| Ip4Address(a.octets()));
        out.send(&ProxyArpDetails { proxy: ProxyArp { table_id: range.table.get(), low, hi } });
    }
}
