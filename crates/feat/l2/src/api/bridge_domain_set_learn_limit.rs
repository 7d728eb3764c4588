//! `bridge_domain_set_learn_limit`: sets a bridge domain's learn limit.

use crate::message_types::{BridgeDomainSetLearnLimit, BridgeDomainSetLearnLimitReply, L2};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
