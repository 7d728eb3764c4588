//! `classify_add_del_session`: adds to what a classifier table hits.

use crate::api_modules::CLASSIFY;
use crate::classify::{Classifier, Session};
use thalweg_api::{Call, Message, Retval, api_enum};
use thalweg_graph::control::Control;

api_enum! {
    /// What to do with packets that are hit.
    pub struct ClassifyAction: u8 = "classify_action" {
        /// Nothing.
        NONE = 0, "CLASSIFY_API_ACTION_NONE";
        /// Looks them up in an IPv4 table.
        SET_IP4_FIB_INDEX = 1, "CLASSIFY_API_ACTION_SET_IP4_FIB_INDEX";
        /// Looks them up in an IPv6 table.
        SET_IP6_FIB_INDEX = 2, "CLASSIFY_API_ACTION_SET_IP6_FIB_INDEX";
        /// Marks them.
        SET_METADATA = 3, "CLASSIFY_API_ACTION_SET_METADATA";
    }
}

/// Adds a session to a table, or removes it.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct ClassifyAddDelSession {
    /// True to add it, or to change what it says; false to remove it.
    pub is_add: bool,
    /// The table.
    pub table_index: u32,
    /// Where packets would go; kept.
    #[api(default = 0xffff_ffff)]
    pub hit_next_index: u32,
    /// Any number; kept.
    #[api(default = 0xffff_ffff)]
    pub opaque_index: u32,
    /// Bytes that packets would step over; kept.
    #[api(default = 0)]
    pub advance: i32,
    /// What to do with packets; only nothing.
    #[api(default = 0)]
    pub action: ClassifyAction,
    /// A number for the action.
    #[api(default = 0)]
    pub metadata: u32,
    /// First bytes of a packet, with those that the table steps over.
    #[api(count = "match_len: u32")]
    pub r#match: Vec<u8>,
}

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
