//! `nat44_ed_add_del_vrf_table`: limits the tables that the hosts of a routing table reach.

use crate::api_types::NAT44_ED;
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Request; a table is deleted with its routes.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Nat44EdAddDelVrfTable {
    /// Routing table of the hosts.
    pub table_vrf_id: u32,
    /// Add or delete.
    pub is_add: bool,
}

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
