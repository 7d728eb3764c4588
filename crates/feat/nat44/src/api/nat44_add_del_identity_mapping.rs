//! `nat44_add_del_identity_mapping`: adds or deletes an identity mapping.

use crate::api_types::{NAT44_ED, NatConfigFlags, add_del, mapping};
use thalweg_api::types::{InterfaceIndex, Ip4Address};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Nat44AddDelIdentityMapping {
    /// Add or delete.
    pub is_add: bool,
    /// Flags.
    pub flags: NatConfigFlags,
    /// Address.
    pub ip_address: Ip4Address,
    /// IP protocol.
    pub protocol: u8,
    /// Port.
    pub port: u16,
    /// Interface.
    pub sw_if_index: InterfaceIndex,
    /// Routing table; all ones for none.
    pub vrf_id: u32,
    /// The user's word for it.
    pub tag: Text<64>,
}

/// The service.
pub static SERVICE: Call<Control, Nat44AddDelIdentityMapping, Nat44AddDelIdentityMappingReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44AddDelIdentityMapping,
) -> Result<Nat44AddDelIdentityMappingReply, Retval> {
    let keeps = (rq.ip_address.0.into(), rq.port);
    let which = (rq.protocol, rq.vrf_id);
    let mut m = mapping(c, rq.flags, keeps, keeps, rq.sw_if_index, which, &rq.tag)?;
    m.identity = true;
    if !rq.is_add {
        // Which one goes, addresses and ports say.
        (m.mapping.twice, m.mapping.out2in_only) = Default::default();
    }
    add_del(c, m, rq.is_add)?;
    Ok(Nat44AddDelIdentityMappingReply)
}
