//! `bridge_domain_set_default_learn_limit`: sets the learn limit of new bridge domains.

use crate::message_types::{
    BridgeDomainSetDefaultLearnLimit, BridgeDomainSetDefaultLearnLimitReply, L2,
};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
