//! `classify_session_dump`: the sessions of a classifier table.

use crate::api_modules::CLASSIFY;
use crate::classify::Classifier;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::control::Control;

/// Asks for the sessions of a table.
#[derive(Debug, Message)]
#[api(request)]
pub struct ClassifySessionDump {
    /// The table.
    pub table_id: u32,
}

/// A session. Unlike other details messages, it has a return code, as in VPP.
#[derive(Debug, Message)]
#[api(details)]
pub struct ClassifySessionDetails {
    /// 0.
    pub retval: i32,
    /// The table.
    pub table_id: u32,
    /// Where packets would go.
    pub hit_next_index: u32,
    /// Bytes that they would step over.
    pub advance: i32,
    /// Any number.
    pub opaque_index: u32,
    /// The bytes that it hits, those of the mask only.
    #[api(count = "match_length: u32")]
    pub r#match: Vec<u8>,
}

/// The service.
pub static SERVICE: Dump<Control, ClassifySessionDump, ClassifySessionDetails> =
    Dump::new(&CLASSIFY, handle);

fn handle(c: &mut Control, rq: ClassifySessionDump, out: &mut Details<ClassifySessionDetails>) {
    let state = c.state::<Classifier>();
    let state = state.borrow();
    for (key, session) in state.table(rq.table_id).iter().flat_map(|t| &t.sessions) {
        out.send(&ClassifySessionDetails {
            retval: 0,
            table_id: rq.table_id,
            hit_next_index: session.hit_next,
            advance: session.advance,
            opaque_index: session.opaque,
            r#match: key.clone(),
        });
    }
}
