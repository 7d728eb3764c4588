//! `nat44_interface_addr_dump`: lists interfaces whose addresses are used as pool addresses.

use crate::Nat44;
use crate::api_types::flags;
use crate::message_types::{
    NAT44_ED, Nat44InterfaceAddrDetails, Nat44InterfaceAddrDump, NatConfigFlags,
};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

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
