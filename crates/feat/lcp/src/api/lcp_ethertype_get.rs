//! `lcp_ethertype_get`: lists ethertypes whose frames are passed.

use crate::api_types::LCP;
use crate::options;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Lists ethertypes whose frames are passed.
#[derive(Debug, Message)]
#[api(request)]
pub struct LcpEthertypeGet;

/// Reply to [`LcpEthertypeGet`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct LcpEthertypeGetReply {
    /// The ethertypes.
    #[api(count = "count: u16")]
    pub ethertypes: Vec<u16>,
}

/// The service.
pub static SERVICE: Call<Control, LcpEthertypeGet, LcpEthertypeGetReply> = Call::new(&LCP, handle);

fn handle(c: &mut Control, _: LcpEthertypeGet) -> Result<LcpEthertypeGetReply, Retval> {
    Ok(LcpEthertypeGetReply { ethertypes: options::get(c).ethertypes.into_iter().collect() })
}
