//! `nat44_set_session_limit`: limits the sessions of a routing table.

use crate::message_types::{NAT44_ED, Nat44SetSessionLimit, Nat44SetSessionLimitReply};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Nat44SetSessionLimit, Nat44SetSessionLimitReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, rq: Nat44SetSessionLimit) -> Result<Nat44SetSessionLimitReply, Retval> {
    state::set_limit(c, Some(TableId(rq.vrf_id)), rq.session_limit)?;
    Ok(Nat44SetSessionLimitReply)
}
