//! `lcp_osi_proto_get`: lists OSI protocols whose frames are passed.

use crate::api_types::LCP;
use crate::options;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Lists OSI protocols whose frames are passed.
#[derive(Debug, Message)]
#[api(request)]
pub struct LcpOsiProtoGet;

/// Reply to [`LcpOsiProtoGet`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct LcpOsiProtoGetReply {
    /// The protocols' identifiers.
    #[api(count = "count: u8")]
    pub osi_protos: Vec<u8>,
}

/// The service.
pub static SERVICE: Call<Control, LcpOsiProtoGet, LcpOsiProtoGetReply> = Call::new(&LCP, handle);

fn handle(c: &mut Control, _: LcpOsiProtoGet) -> Result<LcpOsiProtoGetReply, Retval> {
    Ok(LcpOsiProtoGetReply { osi_protos: options::get(c).osi.into_iter().collect() })
}
