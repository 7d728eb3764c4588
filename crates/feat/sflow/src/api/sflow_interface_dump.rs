//! `sflow_interface_dump`: interfaces whose packets are sampled.

use crate::api_module::SFLOW;
use crate::state::SFlow;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Asks for interfaces with sFlow.
#[derive(Debug, Message)]
#[api(request)]
pub struct SflowInterfaceDump {
    /// Which one; none means all.
    #[api(default = 0xffff_ffff)]
    pub hw_if_index: InterfaceIndex,
}

/// An interface with sFlow.
#[derive(Debug, Message)]
#[api(details)]
pub struct SflowInterfaceDetails {
    /// Its index, the same that all other messages use.
    pub hw_if_index: InterfaceIndex,
}

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
