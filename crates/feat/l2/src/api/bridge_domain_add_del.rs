//! `bridge_domain_add_del`: makes or deletes a bridge domain.

use crate::api_module::{L2, Make};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Makes a bridge domain, or deletes it.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct BridgeDomainAddDel {
    /// Its id.
    pub bd_id: u32,
    /// Floods to groups.
    pub flood: bool,
    /// Floods what it does not know.
    pub uu_flood: bool,
    /// Forwards.
    pub forward: bool,
    /// Learns addresses.
    pub learn: bool,
    /// Answers ARP.
    pub arp_term: bool,
    /// Forwards ARP to those that it knows.
    pub arp_ufwd: bool,
    /// Minutes after which it forgets a station; 0: never.
    pub mac_age: u8,
    /// A note.
    pub bd_tag: Text<64>,
    /// Whether it is to be there.
    #[api(default = "true")]
    pub is_add: bool,
}

/// The service.
pub static SERVICE: Call<Control, BridgeDomainAddDel, BridgeDomainAddDelReply> =
    Call::new(&L2, handle);

fn handle(c: &mut Control, rq: BridgeDomainAddDel) -> Result<BridgeDomainAddDelReply, Retval> {
    let make = Make {
        id: rq.bd_id,
        flood: rq.flood,
        flood_unknown: rq.uu_flood,
        forward: rq.forward,
        learn: rq.learn,
        arp: rq.arp_term || rq.arp_ufwd,
        mac_age: rq.mac_age,
        tag: rq.bd_tag.as_str(),
    };
    make.run(c, rq.is_add)?;
    Ok(BridgeDomainAddDelReply)
}
