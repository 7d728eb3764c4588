//! `nat44_interface_addr_dump`: lists interfaces whose addresses are used as pool addresses.

use crate::Nat44;
use crate::api_types::{NAT44_ED, NatConfigFlags, flags};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44InterfaceAddrDump;

/// Entry of the dump.
#[derive(Debug, Message)]
#[api(details)]
pub struct Nat44InterfaceAddrDetails {
    /// Interface.
    pub sw_if_index: InterfaceIndex,
    /// Flags.
    pub flags: NatConfigFlags,
}

/// The service.
pub static SERVICE: Dump<Control, Nat44InterfaceAddrDump, Nat44InterfaceAddrDetails> =
    Dump::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    _: Nat44InterfaceAddrDump,
    out: &mut Details<Nat44InterfaceAddrDetails>,
) {
    for (sw_if, twice) in c.state::<Nat44>().borrow().address_interfaces() {
        let flags = flags(&[(*twice, NatConfigFlags::TWICE_NAT)]);
        out.send(&Nat44InterfaceAddrDetails { sw_if_index: InterfaceIndex(sw_if.get()), flags });
    }
}
