//! `ip_address_dump`: lists an interface's addresses.

use crate::Ip4;
use crate::api_types::IP;
use std::net::IpAddr;
use thalweg_api::types::{AddressWithPrefix, InterfaceIndex};
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Requests addresses.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpAddressDump {
    /// Interface.
    pub sw_if_index: InterfaceIndex,
    /// IPv6 addresses.
    pub is_ipv6: bool,
}

/// An address.
#[derive(Debug, Message)]
#[api(details)]
pub struct IpAddressDetails {
    /// Interface.
    pub sw_if_index: InterfaceIndex,
    /// The address.
    pub prefix: AddressWithPrefix,
}

/// The service.
pub static SERVICE: Dump<Control, IpAddressDump, IpAddressDetails> = Dump::new(&IP, handle);

fn handle(c: &mut Control, rq: IpAddressDump, out: &mut Details<IpAddressDetails>) {
    if rq.is_ipv6 {
        return;
    }
    for (ip, len) in c.state::<Ip4>().borrow().addresses(rq.sw_if_index.0) {
        let prefix = AddressWithPrefix((IpAddr::V4(*ip), *len).into());
        out.send(&IpAddressDetails { sw_if_index: rq.sw_if_index, prefix });
    }
}
