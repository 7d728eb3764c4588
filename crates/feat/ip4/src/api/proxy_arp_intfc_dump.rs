//! `proxy_arp_intfc_dump`: lists the interfaces with proxy ARP.

use crate::api_types::ARP;
use crate::proxy_arp;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Requests the interfaces with proxy ARP.
#[derive(Debug, Message)]
#[api(request)]
pub struct ProxyArpIntfcDump;

/// An interface with proxy ARP.
#[derive(Debug, Message)]
#[api(details)]
pub struct ProxyArpIntfcDetails {
    /// The interface.
    pub sw_if_index: u32,
}

/// The service.
pub static SERVICE: Dump<Control, ProxyArpIntfcDump, ProxyArpIntfcDetails> =
    Dump::new(&ARP, handle);

fn handle(c: &mut Control, _: ProxyArpIntfcDump, out: &mut Details<ProxyArpIntfcDetails>) {
    for sw_if in proxy_arp::interfaces(c) {
        out.send(&ProxyArpIntfcDetails { sw_if_index: sw_if.get() });
    }
}
