//! `bridge_domain_set_mac_age`: sets a bridge domain's MAC aging time.

use crate::api_module::L2;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets the MAC aging time of a bridge domain.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct BridgeDomainSetMacAge {
    /// Bridge domain id.
    pub bd_id: u32,
    /// MAC aging time in minutes; 0 disables aging.
    pub mac_age: u8,
}

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
