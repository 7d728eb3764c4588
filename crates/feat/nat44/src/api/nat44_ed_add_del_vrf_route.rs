//! `nat44_ed_add_del_vrf_route`: adds or deletes a route between routing tables.

use crate::message_types::{NAT44_ED, Nat44EdAddDelVrfRoute, Nat44EdAddDelVrfRouteReply};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

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
