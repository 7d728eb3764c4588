//! `nat44_add_del_static_mapping`: adds or deletes a static mapping.

use crate::api_types::{add_del, mapping};
use crate::message_types::{NAT44_ED, Nat44AddDelStaticMapping, Nat44AddDelStaticMappingReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Nat44AddDelStaticMapping, Nat44AddDelStaticMappingReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44AddDelStaticMapping,
) -> Result<Nat44AddDelStaticMappingReply, Retval> {
    let m = mapping(
        c,
        rq.flags,
        (rq.local_ip_address.0.into(), rq.local_port),
        (rq.external_ip_address.0.into(), rq.external_port),
        rq.external_sw_if_index,
        (rq.protocol, rq.vrf_id),
        &rq.tag,
    )?;
    add_del(c, m, rq.is_add)?;
    Ok(Nat44AddDelStaticMappingReply)
}
