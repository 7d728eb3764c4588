//! `classify_pcap_lookup_table`: finds the table of the filter of captures that has a mask.

use crate::message_types::{CLASSIFY, ClassifyPcapLookupTable, ClassifyPcapLookupTableReply};
use thalweg_api::{Call, Retval};
use thalweg_engine::api::classify_trace_lookup_table::find;
use thalweg_engine::classify::NONE;
use thalweg_graph::Control;

impl Default for ClassifyPcapLookupTableReply {
    fn default() -> Self {
        ClassifyPcapLookupTableReply { table_index: NONE }
    }
}

/// The service.
pub static SERVICE: Call<Control, ClassifyPcapLookupTable, ClassifyPcapLookupTableReply> =
    Call::new(&CLASSIFY, handle);

fn handle(
    c: &mut Control,
    rq: ClassifyPcapLookupTable,
) -> Result<ClassifyPcapLookupTableReply, Retval> {
    let user = super::classify_pcap_set_table::user(c, rq.sw_if_index)?;
    let table_index = find(c, user, rq.skip_n_vectors, rq.match_n_vectors, &rq.mask)?;
    Ok(ClassifyPcapLookupTableReply { table_index })
}
