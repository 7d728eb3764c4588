//! `lcp_osi_proto_enable`: has frames of an OSI protocol passed.

use crate::message_types::{LCP, LcpOsiProtoEnable, LcpOsiProtoEnableReply};
use crate::protocols;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, LcpOsiProtoEnable, LcpOsiProtoEnableReply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, rq: LcpOsiProtoEnable) -> Result<LcpOsiProtoEnableReply, Retval> {
    protocols::set_osi(c, rq.osi_proto, true);
    Ok(LcpOsiProtoEnableReply)
}
