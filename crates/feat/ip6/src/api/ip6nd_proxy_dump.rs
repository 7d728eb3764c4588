//! `ip6nd_proxy_dump`: lists the hosts of other links that the router answers for.

use crate::api_types::IP6_ND;
use crate::nd_proxy;
use thalweg_api::types::{InterfaceIndex, Ip6Address};
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Requests the hosts that the router answers for.
#[derive(Debug, Message)]
#[api(request)]
pub struct Ip6ndProxyDump;

/// A host that the router answers for.
#[derive(Debug, Message)]
#[api(details)]
pub struct Ip6ndProxyDetails {
    /// The interface where it is.
    pub sw_if_index: InterfaceIndex,
    /// Its address.
    pub ip: Ip6Address,
}

/// The service.
pub static SERVICE: Dump<Control, Ip6ndProxyDump, Ip6ndProxyDetails> = Dump::new(&IP6_ND, handle);

fn handle(c: &mut Control, _: Ip6ndProxyDump, out: &mut Details<Ip6ndProxyDetails>) {
    for (ip, sw_if) in nd_proxy::list(c) {
        let (sw_if_index, ip) = (InterfaceIndex(sw_if.get()), Ip6Address(ip.octets()));
        out.send(&Ip6ndProxyDetails { sw_if_index, ip });
    }
}
