//! `bridge_domain_add_del`: creates or deletes a bridge domain.

use crate::api_module::{BridgeParams, L2};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Creates or deletes a bridge domain.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct BridgeDomainAddDel {
    /// Bridge domain id.
    pub bd_id: u32,
    /// Floods broadcast and multicast frames.
    pub flood: bool,
    /// Floods unknown unicast frames.
    pub uu_flood: bool,
    /// Forwards known unicast frames.
    pub forward: bool,
    /// Learns source MAC addresses.
    pub learn: bool,
    /// ARP termination.
    pub arp_term: bool,
    /// ARP unicast forwarding.
    pub arp_ufwd: bool,
    /// MAC aging time in minutes; 0 disables aging.
    pub mac_age: u8,
    /// User tag.
    pub bd_tag: Text<64>,
    /// True to create, false to delete.
    #[api(default = "true")]
    pub is_add: bool,
}

/// The service.
pub static SERVICE: Call<Control, BridgeDomainAddDel, BridgeDomainAddDelReply> =
    Call::new(&L2, handle);

fn handle(c: &mut Control, rq: BridgeDomainAddDel) -> Result<BridgeDomainAddDelReply, Retval> {
    let make = BridgeParams {
        id: rq.bd_id,
        flood: rq.flood,
        flood_unknown: rq.uu_flood,
        forward: rq.forward,
        learn: rq.learn,
        arp_term: rq.arp_term,
        arp_ufwd: rq.arp_ufwd,
        mac_age: rq.mac_age,
        tag: rq.bd_tag.as_str(),
    };
    make.run(c, rq.is_add)?;
    Ok(BridgeDomainAddDelReply)
}
