//! `nat44_add_del_static_mapping_v2`: adds or deletes a static mapping.

use crate::api_types::{add_del, mapping};
use crate::message_types::{NAT44_ED, Nat44AddDelStaticMappingV2, Nat44AddDelStaticMappingV2Reply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Nat44AddDelStaticMappingV2, Nat44AddDelStaticMappingV2Reply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44AddDelStaticMappingV2,
) -> Result<Nat44AddDelStaticMappingV2Reply, Retval> {
    let mut m = mapping(
        c,
        rq.flags,
        (rq.local_ip_address.0.into(), rq.local_port),
        (rq.external_ip_address.0.into(), rq.external_port),
        rq.external_sw_if_index,
        (rq.protocol, rq.vrf_id),
        &rq.tag,
    )?;
    m.mapping.exact = rq.match_pool.then(|| rq.pool_ip_address.0.into());
    add_del(c, m, rq.is_add)?;
    Ok(Nat44AddDelStaticMappingV2Reply)
}
