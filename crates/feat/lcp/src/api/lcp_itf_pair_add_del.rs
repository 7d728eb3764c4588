//! `lcp_itf_pair_add_del`: makes or deletes a pair.

use crate::api_types::{LCP, LcpItfHostType, Request, add_del};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Makes or deletes a pair.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct LcpItfPairAddDel {
    /// Makes one.
    #[api(default = "true")]
    pub is_add: bool,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Name of the twin.
    pub host_if_name: Text<16>,
    /// Kind of the twin.
    pub host_if_type: LcpItfHostType,
    /// Its network namespace; the one for all if empty.
    pub netns: Text<32>,
}

/// The service.
pub static SERVICE: Call<Control, LcpItfPairAddDel, LcpItfPairAddDelReply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, rq: LcpItfPairAddDel) -> Result<LcpItfPairAddDelReply, Retval> {
    let request = Request {
        is_add: rq.is_add,
        sw_if_index: rq.sw_if_index,
        name: rq.host_if_name.as_str(),
        kind: rq.host_if_type,
        netns: rq.netns.as_str(),
    };
    add_del(c, &request)?;
    Ok(LcpItfPairAddDelReply)
}
