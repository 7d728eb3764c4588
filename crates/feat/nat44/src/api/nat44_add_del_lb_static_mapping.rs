//! `nat44_add_del_lb_static_mapping`: adds or deletes a load-balancing mapping.

use crate::api_types::{add_del, mapping};
use crate::message_types::{
    NAT44_ED, Nat44AddDelLbStaticMapping, Nat44AddDelLbStaticMappingReply, Nat44LbAddrPort,
};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Nat44AddDelLbStaticMapping, Nat44AddDelLbStaticMappingReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44AddDelLbStaticMapping,
) -> Result<Nat44AddDelLbStaticMappingReply, Retval> {
    let external = (rq.external_addr.0.into(), rq.external_port);
    let none = (std::net::Ipv4Addr::UNSPECIFIED, 0);
    let any = InterfaceIndex::NONE;
    let mut m = mapping(c, rq.flags, none, external, any, (rq.protocol, 0), &rq.tag)?;
    m.mapping.backends = rq.locals.iter().map(Nat44LbAddrPort::backend).collect();
    m.mapping.affinity = rq.affinity;
    if rq.is_add && (rq.locals.is_empty() || m.mapping.is_address_only()) {
        return Err(Retval::INVALID_VALUE.because("back ends and a protocol expected"));
    }
    add_del(c, m, rq.is_add)?;
    Ok(Nat44AddDelLbStaticMappingReply)
}
