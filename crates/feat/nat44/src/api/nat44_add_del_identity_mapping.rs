//! `nat44_add_del_identity_mapping`: adds or deletes an identity mapping.

use crate::api_types::{add_del, mapping};
use crate::message_types::{NAT44_ED, Nat44AddDelIdentityMapping, Nat44AddDelIdentityMappingReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
        // Addresses and ports say which one goes.
        (m.mapping.twice, m.mapping.out2in_only) = Default::default();
    }
    add_del(c, m, rq.is_add)?;
    Ok(Nat44AddDelIdentityMappingReply)
}
