//! `nat44_interface_dump`: lists interfaces with their roles.

use crate::Nat44;
use crate::api_types::flags;
use crate::message_types::{NAT44_ED, Nat44InterfaceDetails, Nat44InterfaceDump, NatConfigFlags};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, Nat44InterfaceDump, Nat44InterfaceDetails> =
    Dump::new(&NAT44_ED, handle);

fn handle(c: &mut Control, _: Nat44InterfaceDump, out: &mut Details<Nat44InterfaceDetails>) {
    let nat = c.state::<Nat44>();
    let nat = nat.borrow();
    for (sw_if, role) in nat.roles().iter().filter(|r| !r.1.output) {
        let flags = flags(&[
            (role.inside, NatConfigFlags::INSIDE),
            (role.outside, NatConfigFlags::OUTSIDE),
        ]);
        out.send(&Nat44InterfaceDetails { flags, sw_if_index: InterfaceIndex(sw_if.get()) });
    }
}
