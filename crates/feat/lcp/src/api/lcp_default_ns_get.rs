//! `lcp_default_ns_get`: returns the network namespace of twins that name none.

use crate::api_types::LCP;
use crate::options;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Returns the network namespace of twins that name none.
#[derive(Debug, Message)]
#[api(request)]
pub struct LcpDefaultNsGet;

/// Reply to [`LcpDefaultNsGet`].
#[derive(Debug, Default, Message)]
#[api(details, in_progress)]
pub struct LcpDefaultNsGetReply {
    /// The namespace; empty for the router's own.
    pub netns: Text<32>,
}

/// The service.
pub static SERVICE: Call<Control, LcpDefaultNsGet, LcpDefaultNsGetReply> = Call::new(&LCP, handle);

fn handle(c: &mut Control, _: LcpDefaultNsGet) -> Result<LcpDefaultNsGetReply, Retval> {
    let namespace = options::get(c).namespace.unwrap_or_default();
    Ok(LcpDefaultNsGetReply { netns: namespace.as_str().into() })
}
