//! `sflow_interface_dump`: interfaces whose packets are sampled.

use crate::message_types::{SFLOW, SflowInterfaceDetails, SflowInterfaceDump};
use crate::state::SFlow;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, SflowInterfaceDump, SflowInterfaceDetails> =
    Dump::new(&SFLOW, handle);

fn handle(c: &mut Control, rq: SflowInterfaceDump, out: &mut Details<SflowInterfaceDetails>) {
    for (sw_if, _) in c.state::<SFlow>().borrow().ports() {
        let hw_if_index = InterfaceIndex(sw_if.get());
        if [hw_if_index, InterfaceIndex::NONE].contains(&rq.hw_if_index) {
            out.send(&SflowInterfaceDetails { hw_if_index });
        }
    }
}
