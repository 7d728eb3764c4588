//! `lcp_default_ns_get`: returns the network namespace of twins that name none.

use crate::message_types::{LCP, LcpDefaultNsGet, LcpDefaultNsGetReply};
use crate::options;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, LcpDefaultNsGet, LcpDefaultNsGetReply> = Call::new(&LCP, handle);

fn handle(c: &mut Control, _: LcpDefaultNsGet) -> Result<LcpDefaultNsGetReply, Retval> {
    let namespace = options::get(c).namespace.unwrap_or_default();
    Ok(LcpDefaultNsGetReply { netns: namespace.as_str().into() })
}
