//! `lcp_itf_pair_add_del_v2`: makes or deletes a pair.

use crate::api_types::{Request, add_del};
use crate::message_types::{LCP, LcpItfPairAddDelV2, LcpItfPairAddDelV2Reply};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, LcpItfPairAddDelV2, LcpItfPairAddDelV2Reply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, rq: LcpItfPairAddDelV2) -> Result<LcpItfPairAddDelV2Reply, Retval> {
    let request = Request {
        is_add: rq.is_add,
        sw_if_index: rq.sw_if_index,
        name: rq.host_if_name.as_str(),
        kind: rq.host_if_type,
        netns: rq.netns.as_str(),
    };
    let host = add_del(c, &request)?;
    let host_sw_if_index = host.map_or(InterfaceIndex::NONE, |host| InterfaceIndex(host.get()));
    Ok(LcpItfPairAddDelV2Reply { host_sw_if_index })
}
