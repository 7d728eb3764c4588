//! `proxy_arp_intfc_dump`: lists the interfaces with proxy ARP.

use crate::message_types::{ARP, ProxyArpIntfcDetails, ProxyArpIntfcDump};
use crate::proxy_arp;
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, ProxyArpIntfcDump, ProxyArpIntfcDetails> =
    Dump::new(&ARP, handle);

fn handle(c: &mut Control, _: ProxyArpIntfcDump, out: &mut Details<ProxyArpIntfcDetails>) {
    for sw_if in proxy_arp::interfaces(c) {
        out.send(&ProxyArpIntfcDetails { sw_if_index: sw_if.get() });
    }
}
