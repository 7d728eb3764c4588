//! `mpls_interface_dump`: lists interfaces that take labelled packets.

use crate::api_types::MPLS;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Requests interfaces that take labelled packets.
#[derive(Debug, Message)]
#[api(request)]
pub struct MplsInterfaceDump {
    /// Which one; all ones for all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

/// An interface that takes labelled packets.
#[derive(Debug, Message)]
#[api(details)]
pub struct MplsInterfaceDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

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
