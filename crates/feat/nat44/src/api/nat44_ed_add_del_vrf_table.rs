//! `nat44_ed_add_del_vrf_table`: limits the tables that the hosts of a routing table reach.

use crate::message_types::{NAT44_ED, Nat44EdAddDelVrfTable, Nat44EdAddDelVrfTableReply};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Nat44EdAddDelVrfTable, Nat44EdAddDelVrfTableReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44EdAddDelVrfTable,
) -> Result<Nat44EdAddDelVrfTableReply, Retval> {
    state::set_vrf_table(c, TableId(rq.table_vrf_id), rq.is_add)?;
    Ok(Nat44EdAddDelVrfTableReply)
}
