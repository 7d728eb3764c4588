//! `classify_table_info`: one classifier table.

use crate::classify::{Classifier, NONE};
use crate::message_types::{CLASSIFY, ClassifyTableInfo, ClassifyTableInfoReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Call<Control, ClassifyTableInfo, ClassifyTableInfoReply> =
    Call::new(&CLASSIFY, handle);

/// VPP's code for an unknown table, which differs from that of other messages.
const CLASSIFY_TABLE_NOT_FOUND: Retval = Retval(-91);

fn handle(c: &mut Control, rq: ClassifyTableInfo) -> Result<ClassifyTableInfoReply, Retval> {
    let state = c.state::<Classifier>();
    let state = state.borrow();
    let table = state.table(rq.table_id).ok_or(CLASSIFY_TABLE_NOT_FOUND)?;
    Ok(ClassifyTableInfoReply {
        table_id: rq.table_id,
        nbuckets: table.buckets,
        match_n_vectors: table.vectors(),
        skip_n_vectors: table.skip,
        active_sessions: table.sessions.len() as u32,
        next_table_index: table.next.unwrap_or(NONE),
        miss_next_index: table.miss_next,
        mask: table.mask.clone(),
    })
}
