//! `lcp_itf_pair_add_del_v3`: makes or deletes a pair.

use crate::api_types::{LCP, LcpItfHostType, Request, add_del};
use crate::pairs;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Makes or deletes a pair.
#[derive(Debug, Message)]
#[api(request, in_progress)]
pub struct LcpItfPairAddDelV3 {
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

/// Reply to [`LcpItfPairAddDelV3`].
#[derive(Debug, Default, Message)]
#[api(reply, in_progress)]
pub struct LcpItfPairAddDelV3Reply {
    /// The twin's index in the kernel.
    pub vif_index: u32,
    /// The router's end of the twin.
    pub host_sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, LcpItfPairAddDelV3, LcpItfPairAddDelV3Reply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, rq: LcpItfPairAddDelV3) -> Result<LcpItfPairAddDelV3Reply, Retval> {
    let request = Request {
        is_add: rq.is_add,
        sw_if_index: rq.sw_if_index,
        name: rq.host_if_name.as_str(),
        kind: rq.host_if_type,
        netns: rq.netns.as_str(),
    };
    let host = add_del(c, &request)?;
    let host_sw_if_index = host.map_or(InterfaceIndex::NONE, |host| InterfaceIndex(host.get()));
    let phy = thalweg_buffer::SwIfIndex(rq.sw_if_index.0);
    let vif_index = pairs::ifindex(c, phy).unwrap_or(u32::MAX);
    Ok(LcpItfPairAddDelV3Reply { vif_index, host_sw_if_index })
}
