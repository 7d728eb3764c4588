//! `bridge_domain_set_default_learn_limit`: sets the learn limit of new bridge domains.

use crate::api_module::L2;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets the learn limit of bridge domains created from now on.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct BridgeDomainSetDefaultLearnLimit {
    /// Maximum number of learned MAC addresses.
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
