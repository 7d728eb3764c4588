//! `nat44_ed_add_del_vrf_route`: adds or deletes a route between routing tables.

use crate::api_types::NAT44_ED;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Request; a route is added after all others.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Nat44EdAddDelVrfRoute {
    /// Routing table of the hosts.
    pub table_vrf_id: u32,
    /// Routing table to reach.
    pub vrf_id: u32,
    /// Add or delete.
    pub is_add: bool,
}

/// The service.
pub static SERVICE: Call<Control, Nat44EdAddDelVrfRoute, Nat44EdAddDelVrfRouteReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44EdAddDelVrfRoute,
) -> Result<Nat44EdAddDelVrfRouteReply, Retval> {
    state::set_vrf_route(c, TableId(rq.table_vrf_id), TableId(rq.vrf_id), rq.is_add)?;
    Ok(Nat44EdAddDelVrfRouteReply)
}
