//! `ip_dump`: lists interfaces with addresses.

use crate::Ip;
use crate::api_types::IP;
use crate::family::{Version, for_version};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_device::Interfaces;
use thalweg_graph::Control;
use thalweg_tables::Address;

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
    for_version!(Version::of_flag(rq.is_ipv6), list(c, rq.is_ipv6, out));
}

fn list<A: Address>(c: &Control, is_ipv6: bool, out: &mut Details<IpDetails>) {
    let (ip, all) = (c.state::<Ip<A>>(), c.state::<Interfaces>());
    for view in all.borrow().iter() {
        if !ip.borrow().addresses(view.sw_if).is_empty() {
            out.send(&IpDetails { sw_if_index: InterfaceIndex(view.sw_if.get()), is_ipv6 });
        }
    }
}
