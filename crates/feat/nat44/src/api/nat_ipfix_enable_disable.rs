//! `nat_ipfix_enable_disable`: has sessions noted by IPFIX messages.

use crate::api_types::NAT44_ED;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Has them sent to the collector that was named last, or no longer.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct NatIpfixEnableDisable {
    /// Observation domain; 0 for the one before.
    pub domain_id: u32,
    /// Port that they come from; 0 for the one before.
    pub src_port: u16,
    /// Whether they are to be sent.
    pub enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, NatIpfixEnableDisable, NatIpfixEnableDisableReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: NatIpfixEnableDisable,
) -> Result<NatIpfixEnableDisableReply, Retval> {
    state::set_ipfix(c, rq.enable.then_some((rq.domain_id, rq.src_port)))?;
    Ok(NatIpfixEnableDisableReply)
}
