//! `nat44_forwarding_enable_disable`: forwards or drops packets without a session.

use crate::message_types::{
    NAT44_ED, Nat44ForwardingEnableDisable, Nat44ForwardingEnableDisableReply,
};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
