//! `bridge_domain_set_mac_age`: sets a bridge domain's MAC aging time.

use crate::message_types::{BridgeDomainSetMacAge, BridgeDomainSetMacAgeReply, L2};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, BridgeDomainSetMacAge, BridgeDomainSetMacAgeReply> =
    Call::new(&L2, handle);

fn handle(
    c: &mut Control,
    rq: BridgeDomainSetMacAge,
) -> Result<BridgeDomainSetMacAgeReply, Retval> {
    crate::set_bridge(c, rq.bd_id, |s| s.mac_age = rq.mac_age)?;
    Ok(BridgeDomainSetMacAgeReply)
}
