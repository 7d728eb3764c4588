//! `lcp_osi_proto_get`: lists OSI protocols whose frames are passed.

use crate::message_types::{LCP, LcpOsiProtoGet, LcpOsiProtoGetReply};
use crate::options;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, LcpOsiProtoGet, LcpOsiProtoGetReply> = Call::new(&LCP, handle);

fn handle(c: &mut Control, _: LcpOsiProtoGet) -> Result<LcpOsiProtoGetReply, Retval> {
    Ok(LcpOsiProtoGetReply { osi_protos: options::get(c).osi.into_iter().collect() })
}
