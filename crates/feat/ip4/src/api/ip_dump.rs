//! `ip_dump`: lists interfaces with addresses.

use crate::Ip4;
use crate::api_types::IP;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_device::Interfaces;
use thalweg_graph::Control;

/// Requests interfaces with addresses.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpDump {
    /// Interfaces with IPv6 addresses.
    pub is_ipv6: bool,
}

/// An interface with addresses.
#[derive(Debug, Message)]
#[api(details)]
pub struct IpDetails {
    /// Interface index.
    pub sw_if_index: InterfaceIndex,
    /// The addresses are IPv6.
    pub is_ipv6: bool,
}

/// The service.
pub static SERVICE: Dump<Control, IpDump, IpDetails> = Dump::new(&IP, handle);

fn handle(c: &mut Control, rq: IpDump, out: &mut Details<IpDetails>) {
    if rq.is_ipv6 {
        return;
    }
    let (ip4, all) = (c.state::<Ip4>(), c.state::<Interfaces>());
    for view in all.borrow().iter() {
        if !ip4.borrow().addresses(view.sw_if).is_empty() {
            out.send(&IpDetails { sw_if_index: InterfaceIndex(view.sw_if), is_ipv6: false });
        }
    }
}
