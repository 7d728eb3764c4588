//! `nat_ipfix_enable_disable`: enables or disables session logging by IPFIX.

use crate::api_types::NAT44_ED;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Request; the collector is the last one configured.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct NatIpfixEnableDisable {
    /// Observation domain id; 0 keeps the previous one.
    pub domain_id: u32,
    /// Source port; 0 keeps the previous one.
    pub src_port: u16,
    /// Enable or disable.
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
