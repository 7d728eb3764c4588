//! `ip6nd_proxy_dump`: lists the hosts of other links that the router answers for.

use crate::message_types::{IP6_ND, Ip6ndProxyDetails, Ip6ndProxyDump};
use crate::nd_proxy;
use thalweg_api::types::{InterfaceIndex, Ip6Address};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, Ip6ndProxyDump, Ip6ndProxyDetails> = Dump::new(&IP6_ND, handle);

fn handle(c: &mut Control, _: Ip6ndProxyDump, out: &mut Details<Ip6ndProxyDetails>) {
    for (ip, sw_if) in nd_proxy::list(c) {
        let (sw_if_index, ip) = (InterfaceIndex(sw_if.get()), Ip6Address(ip.octets()));
        out.send(&Ip6ndProxyDetails { sw_if_index, ip });
    }
}
