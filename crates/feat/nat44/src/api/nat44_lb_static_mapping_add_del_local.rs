//! `nat44_lb_static_mapping_add_del_local`: adds or deletes a back end of a load-balancing mapping.

use crate::api_types::{NAT44_ED, Nat44LbAddrPort};
use crate::state;
use thalweg_api::types::Ip4Address;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Nat44LbStaticMappingAddDelLocal {
    /// Add or delete.
    pub is_add: bool,
    /// External address.
    pub external_addr: Ip4Address,
    /// External port.
    pub external_port: u16,
    /// IP protocol.
    pub protocol: u8,
    /// Back end.
    pub local: Nat44LbAddrPort,
}

/// The service.
pub static SERVICE: Call<
    Control,
    Nat44LbStaticMappingAddDelLocal,
    Nat44LbStaticMappingAddDelLocalReply,
> = Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44LbStaticMappingAddDelLocal,
) -> Result<Nat44LbStaticMappingAddDelLocalReply, Retval> {
    let key = (rq.external_addr.0.into(), rq.external_port, rq.protocol);
    state::set_backend(c, key, rq.local.backend(), rq.is_add)?;
    Ok(Nat44LbStaticMappingAddDelLocalReply)
}
