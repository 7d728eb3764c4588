//! `nat44_interface_addr_dump`: interfaces whose addresses are used.

use crate::Nat44;
use crate::api_types::{NAT44_ED, NatConfigFlags, flags};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Asks for them.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44InterfaceAddrDump;

/// One of them.
#[derive(Debug, Message)]
#[api(details)]
pub struct Nat44InterfaceAddrDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Qualities.
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
        out.send(&Nat44InterfaceAddrDetails { sw_if_index: InterfaceIndex(*sw_if), flags });
    }
}
