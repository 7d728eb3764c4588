//! `mpls_interface_dump`: lists interfaces that take labelled packets.

use crate::message_types::{MPLS, MplsInterfaceDetails, MplsInterfaceDump};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, MplsInterfaceDump, MplsInterfaceDetails> =
    Dump::new(&MPLS, handle);

fn handle(c: &mut Control, rq: MplsInterfaceDump, out: &mut Details<MplsInterfaceDetails>) {
    let wanted = rq.sw_if_index.0;
    for i in c.state::<crate::Mpls>().borrow().enabled() {
        if wanted == u32::MAX || wanted == i.get() {
            out.send(&MplsInterfaceDetails { sw_if_index: InterfaceIndex(i.get()) });
        }
    }
}
