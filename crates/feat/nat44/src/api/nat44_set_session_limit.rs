//! `nat44_set_session_limit`: limits the sessions of a routing table.

use crate::api_types::NAT44_ED;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Nat44SetSessionLimit {
    /// Maximum number of sessions; 0 = unlimited.
    pub session_limit: u32,
    /// Routing table.
    pub vrf_id: u32,
}

/// The service.
pub static SERVICE: Call<Control, Nat44SetSessionLimit, Nat44SetSessionLimitReply> =
    Call::new(&NAT44_ED, handle);

fn handle(c: &mut Control, rq: Nat44SetSessionLimit) -> Result<Nat44SetSessionLimitReply, Retval> {
    state::set_limit(c, Some(TableId(rq.vrf_id)), rq.session_limit)?;
    Ok(Nat44SetSessionLimitReply)
}
