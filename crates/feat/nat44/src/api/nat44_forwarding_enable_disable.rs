//! `nat44_forwarding_enable_disable`: forwards or drops packets without a session.

use crate::api_types::NAT44_ED;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct Nat44ForwardingEnableDisable {
    /// Enable or disable.
    pub enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, Nat44ForwardingEnableDisable, Nat44ForwardingEnableDisableReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44ForwardingEnableDisable,
) -> Result<Nat44ForwardingEnableDisableReply, Retval> {
    state::set_forwarding(c, rq.enable)?;
    Ok(Nat44ForwardingEnableDisableReply)
}
