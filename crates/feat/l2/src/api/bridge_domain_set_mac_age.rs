//! `bridge_domain_set_mac_age`: how long a bridge domain remembers.

use crate::api_module::L2;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Changes how long a bridge domain remembers a station that it does not see.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct BridgeDomainSetMacAge {
    /// FlushFilter one.
    pub bd_id: u32,
    /// Minutes; 0: for ever.
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
