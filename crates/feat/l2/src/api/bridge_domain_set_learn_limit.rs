//! `bridge_domain_set_learn_limit`: sets a bridge domain's learn limit.

use crate::api_module::L2;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets how many MAC addresses a bridge domain may learn.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct BridgeDomainSetLearnLimit {
    /// Bridge domain id.
    pub bd_id: u32,
    /// Maximum number of learned MAC addresses.
    pub learn_limit: u32,
}

/// The service.
pub static SERVICE: Call<Control, BridgeDomainSetLearnLimit, BridgeDomainSetLearnLimitReply> =
    Call::new(&L2, handle);

fn handle(
    c: &mut Control,
    rq: BridgeDomainSetLearnLimit,
) -> Result<BridgeDomainSetLearnLimitReply, Retval> {
    crate::set_bridge(c, rq.bd_id, |s| s.learn_limit = rq.learn_limit)?;
    Ok(BridgeDomainSetLearnLimitReply)
}
