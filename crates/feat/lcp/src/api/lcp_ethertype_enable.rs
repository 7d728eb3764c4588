//! `lcp_ethertype_enable`: has frames of an ethertype passed.

use crate::message_types::{LCP, LcpEthertypeEnable, LcpEthertypeEnableReply};
use crate::protocols;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, LcpEthertypeEnable, LcpEthertypeEnableReply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, rq: LcpEthertypeEnable) -> Result<LcpEthertypeEnableReply, Retval> {
    protocols::set_ethertype(c, rq.ethertype, true)?;
    Ok(LcpEthertypeEnableReply)
}
