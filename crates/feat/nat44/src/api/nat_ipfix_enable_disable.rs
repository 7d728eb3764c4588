//! `nat_ipfix_enable_disable`: enables or disables session logging by IPFIX.

use crate::message_types::{NAT44_ED, NatIpfixEnableDisable, NatIpfixEnableDisableReply};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
