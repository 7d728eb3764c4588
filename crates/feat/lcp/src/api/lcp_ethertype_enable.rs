//! `lcp_ethertype_enable`: has frames of an ethertype passed.

use crate::api_types::LCP;
use crate::protocols;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Has frames of an ethertype passed.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct LcpEthertypeEnable {
    /// The ethertype.
    pub ethertype: u16,
}

/// The service.
pub static SERVICE: Call<Control, LcpEthertypeEnable, LcpEthertypeEnableReply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, rq: LcpEthertypeEnable) -> Result<LcpEthertypeEnableReply, Retval> {
    protocols::set_ethertype(c, rq.ethertype, true)?;
    Ok(LcpEthertypeEnableReply)
}
