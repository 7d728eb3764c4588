//! `lcp_itf_pair_add_del`: makes or deletes a pair.

use crate::api_types::{Request, add_del};
use crate::message_types::{LCP, LcpItfPairAddDel, LcpItfPairAddDelReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
