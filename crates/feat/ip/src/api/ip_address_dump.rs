//! `ip_address_dump`: lists an interface's addresses.

use crate::Ip;
use crate::api_types::IP;
use crate::family::{Version, for_version};
use thalweg_api::types::{AddressWithPrefix, InterfaceIndex};
use thalweg_api::{Details, Dump, Message};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;
use thalweg_tables::Address;

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
    for_version!(Version::of_flag(rq.is_ipv6), list(c, rq.sw_if_index, out));
}

fn list<A: Address>(c: &Control, sw_if_index: InterfaceIndex, out: &mut Details<IpAddressDetails>) {
    for address in c.state::<Ip<A>>().borrow().addresses(SwIfIndex(sw_if_index.0)) {
        let prefix = AddressWithPrefix((address.addr.to_ip(), address.len).into());
        out.send(&IpAddressDetails { sw_if_index, prefix });
    }
}
