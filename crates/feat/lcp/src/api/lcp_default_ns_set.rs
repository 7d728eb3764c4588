//! `lcp_default_ns_set`: sets the network namespace of twins that name none.

use crate::api_types::LCP;
use crate::options;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Sets the network namespace of twins that name none.
#[derive(Debug, Message)]
#[api(request, autoreply, in_progress)]
pub struct LcpDefaultNsSet {
    /// The namespace; none if empty.
    pub netns: Text<32>,
}

/// The service.
pub static SERVICE: Call<Control, LcpDefaultNsSet, LcpDefaultNsSetReply> = Call::new(&LCP, handle);

fn handle(c: &mut Control, rq: LcpDefaultNsSet) -> Result<LcpDefaultNsSetReply, Retval> {
    options::set_namespace(c, Some(rq.netns.as_str()))?;
    Ok(LcpDefaultNsSetReply)
}
