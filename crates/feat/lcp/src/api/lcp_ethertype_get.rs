//! `lcp_ethertype_get`: lists ethertypes whose frames are passed.

use crate::message_types::{LCP, LcpEthertypeGet, LcpEthertypeGetReply};
use crate::options;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, LcpEthertypeGet, LcpEthertypeGetReply> = Call::new(&LCP, handle);

fn handle(c: &mut Control, _: LcpEthertypeGet) -> Result<LcpEthertypeGetReply, Retval> {
    Ok(LcpEthertypeGetReply { ethertypes: options::get(c).ethertypes.into_iter().collect() })
}
