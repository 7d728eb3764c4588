//! `bridge_domain_set_learn_limit`: how many stations a bridge domain learns.

use crate::api_module::L2;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Changes how many stations a bridge domain learns at most.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct BridgeDomainSetLearnLimit {
    /// FlushFilter one.
    pub bd_id: u32,
    /// Stations.
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
