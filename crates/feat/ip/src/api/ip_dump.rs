//! `ip_dump`: lists interfaces with addresses.

use crate::Ip;
use crate::family::{Version, for_version};
use crate::message_types::{IP, IpDetails, IpDump};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump};
use thalweg_device::Interfaces;
use thalweg_graph::Control;
use thalweg_tables::Address;

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
