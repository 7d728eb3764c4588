//! `classify_pcap_lookup_table`: finds the table of the filter of captures that has a mask.

use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_engine::api::classify_trace_lookup_table::find;
use thalweg_engine::api_modules::CLASSIFY;
use thalweg_engine::classify::NONE;
use thalweg_graph::Control;

/// Asks for the table of a mask.
#[derive(Debug, Message)]
#[api(request)]
pub struct ClassifyPcapLookupTable {
    /// The interface; 0 for captures of any.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
    /// Vectors before the mask.
    #[api(default = 0)]
    pub skip_n_vectors: u32,
    /// Vectors of the mask.
    #[api(default = 1)]
    pub match_n_vectors: u32,
    /// The mask.
    #[api(count = "mask_len: u32")]
    pub mask: Vec<u8>,
}

/// Replies to [`ClassifyPcapLookupTable`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct ClassifyPcapLookupTableReply {
    /// The table; all ones for none.
    pub table_index: u32,
}

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
