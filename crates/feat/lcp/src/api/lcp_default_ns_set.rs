//! `lcp_default_ns_set`: sets the network namespace of twins that name none.

use crate::message_types::{LCP, LcpDefaultNsSet, LcpDefaultNsSetReply};
use crate::options;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, LcpDefaultNsSet, LcpDefaultNsSetReply> = Call::new(&LCP, handle);

fn handle(c: &mut Control, rq: LcpDefaultNsSet) -> Result<LcpDefaultNsSetReply, Retval> {
    options::set_namespace(c, Some(rq.netns.as_str()))?;
    Ok(LcpDefaultNsSetReply)
}
