//! `bridge_domain_add_del`: creates or deletes a bridge domain.

use crate::api_module::BridgeParams;
use crate::message_types::{BridgeDomainAddDel, BridgeDomainAddDelReply, L2};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
