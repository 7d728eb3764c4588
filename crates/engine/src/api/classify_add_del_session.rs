//! `classify_add_del_session`: adds to what a classifier table hits.

use crate::classify::{Classifier, Session};
use crate::message_types::{
    CLASSIFY, ClassifyAction, ClassifyAddDelSession, ClassifyAddDelSessionReply,
};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;

/// The service.
pub static SERVICE: Call<Control, ClassifyAddDelSession, ClassifyAddDelSessionReply> =
    Call::new(&CLASSIFY, handle);

fn handle(
    c: &mut Control,
    rq: ClassifyAddDelSession,
) -> Result<ClassifyAddDelSessionReply, Retval> {
    let state = c.state::<Classifier>();
    let mut state = state.borrow_mut();
    match rq.action {
        _ if !rq.is_add => state.remove_session(rq.table_index, &rq.r#match)?,
        ClassifyAction::NONE if rq.metadata == 0 => {
            let session = Session {
                hit_next: rq.hit_next_index,
                opaque: rq.opaque_index,
                advance: rq.advance,
            };
            state.add_session(rq.table_index, &rq.r#match, session)?;
        }
        action if !action.known() => return Err(Retval::INVALID_VALUE),
        _ => {
            let text = "tables only choose packets for traces and captures";
            return Err(Retval::UNSUPPORTED.because(text));
        }
    }
    Ok(ClassifyAddDelSessionReply)
}
