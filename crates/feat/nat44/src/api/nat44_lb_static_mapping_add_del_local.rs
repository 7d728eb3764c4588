//! `nat44_lb_static_mapping_add_del_local`: adds or deletes a back end of a load-balancing mapping.

use crate::message_types::{
    NAT44_ED, Nat44LbStaticMappingAddDelLocal, Nat44LbStaticMappingAddDelLocalReply,
};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
