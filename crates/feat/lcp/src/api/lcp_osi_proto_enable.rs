//! `lcp_osi_proto_enable`: has frames of an OSI protocol passed.

use crate::api_types::LCP;
use crate::protocols;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Has frames of an OSI protocol passed.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct LcpOsiProtoEnable {
    /// The protocol's identifier.
    pub osi_proto: u8,
}

/// The service.
pub static SERVICE: Call<Control, LcpOsiProtoEnable, LcpOsiProtoEnableReply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, rq: LcpOsiProtoEnable) -> Result<LcpOsiProtoEnableReply, Retval> {
    protocols::set_osi(c, rq.osi_proto, true);
    Ok(LcpOsiProtoEnableReply)
}
