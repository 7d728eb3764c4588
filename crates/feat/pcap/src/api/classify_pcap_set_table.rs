//! `classify_pcap_set_table`: makes a chain of tables the filter of captures.

use crate::message_types::{CLASSIFY, ClassifyPcapSetTable, ClassifyPcapSetTableReply};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Retval};
use thalweg_device::{SwIfIndex, interface};
use thalweg_engine::api::classify_trace_set_table::set;
use thalweg_engine::classify::{NONE, User};
use thalweg_graph::Control;

impl Default for ClassifyPcapSetTableReply {
    fn default() -> Self {
        ClassifyPcapSetTableReply { table_index: NONE }
    }
}

/// The service.
pub static SERVICE: Call<Control, ClassifyPcapSetTable, ClassifyPcapSetTableReply> =
    Call::new(&CLASSIFY, handle);

fn handle(c: &mut Control, rq: ClassifyPcapSetTable) -> Result<ClassifyPcapSetTableReply, Retval> {
    let user = user(c, rq.sw_if_index)?;
    let table_index = set(c, user, rq.table_index, rq.sort_masks)?;
    Ok(ClassifyPcapSetTableReply { table_index })
}

/// Returns the owner of the filter.
pub(super) fn user(c: &Control, sw_if_index: InterfaceIndex) -> Result<User, Retval> {
    let sw_if = SwIfIndex(sw_if_index.0);
    match sw_if_index {
        InterfaceIndex(0) => Ok(User::Pcap),
        // VPP's code here is that of a value.
        _ => match interface::view(c, sw_if) {
            Ok(_) => Ok(User::PcapOf(sw_if)),
            Err(e) => Err(Retval::INVALID_VALUE.because(e)),
        },
    }
}
