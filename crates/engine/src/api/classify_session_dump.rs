//! `classify_session_dump`: the sessions of a classifier table.

use crate::classify::Classifier;
use crate::message_types::{CLASSIFY, ClassifySessionDetails, ClassifySessionDump};
use thalweg_api::{Details, Dump};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Dump<Control, ClassifySessionDump, ClassifySessionDetails> =
    Dump::new(&CLASSIFY, handle);

fn handle(c: &mut Control, rq: ClassifySessionDump, out: &mut Details<ClassifySessionDetails>) {
    let state = c.state::<Classifier>();
    let state = state.borrow();
    for (key, session) in state.table(rq.table_id).iter().flat_map(|t| &t.sessions) {
        out.send(&ClassifySessionDetails {
            table_id: rq.table_id,
            hit_next_index: session.hit_next,
            advance: session.advance,
            opaque_index: session.opaque,
            r#match: key.clone(),
        });
    }
}
