//! `classify_table_info`: one classifier table.

use crate::api_modules::CLASSIFY;
use crate::classify::{Classifier, NONE};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;

/// Asks for a table.
#[derive(Debug, Message)]
#[api(request)]
pub struct ClassifyTableInfo {
    /// Its number.
    pub table_id: u32,
}

/// Replies to [`ClassifyTableInfo`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ClassifyTableInfoReply {
    /// Its number.
    pub table_id: u32,
    /// Hash buckets that its maker asked for.
    pub nbuckets: u32,
    /// Vectors of its mask.
    pub match_n_vectors: u32,
    /// Vectors before the mask.
    pub skip_n_vectors: u32,
    /// Number of sessions.
    pub active_sessions: u32,
    /// The table to try next; all ones for none.
    pub next_table_index: u32,
    /// Where packets without a session would go.
    pub miss_next_index: u32,
    /// The bits that count.
    #[api(count = "mask_length: u32")]
    pub mask: Vec<u8>,
}

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
