//! `ip_address_dump`: lists an interface's addresses.

use crate::Ip;
use crate::family::{Version, for_version};
use crate::message_types::{IP, IpAddressDetails, IpAddressDump};
use thalweg_api::types::{AddressWithPrefix, InterfaceIndex};
use thalweg_api::{Details, Dump};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;
use thalweg_tables::Address;

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
