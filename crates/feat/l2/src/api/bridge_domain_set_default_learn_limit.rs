//! `bridge_domain_set_default_learn_limit`: how many stations new bridge domains learn.

use crate::api_module::L2;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Changes how many stations a bridge domain made from now on learns at most.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct BridgeDomainSetDefaultLearnLimit {
    /// Stations.
    pub learn_limit: u32,
}

/// The service.
pub static SERVICE: Call<
    Control,
    BridgeDomainSetDefaultLearnLimit,
    BridgeDomainSetDefaultLearnLimitReply,
> = Call::new(&L2, handle);

fn handle(
    c: &mut Control,
    rq: BridgeDomainSetDefaultLearnLimit,
) -> Result<BridgeDomainSetDefaultLearnLimitReply, Retval> {
    crate::set_default_learn_limit(c, rq.learn_limit);
    Ok(BridgeDomainSetDefaultLearnLimitReply)
}
