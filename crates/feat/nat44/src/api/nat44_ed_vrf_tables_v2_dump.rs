//! `nat44_ed_vrf_tables_v2_dump`: lists the routes between routing tables.

use crate::Nat44;
use crate::api_types::NAT44_ED;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, status = "in_progress")]
pub struct Nat44EdVrfTablesV2Dump;

/// Entry of the dump.
#[derive(Debug, Message)]
#[api(details, status = "in_progress")]
pub struct Nat44EdVrfTablesV2Details {
    /// Routing table of the hosts.
    pub table_vrf_id: u32,
    /// Tables that they reach, in the order they are tried.
    #[api(count = "n_vrf_ids: u32")]
    pub vrf_ids: Vec<u32>,
}

/// The service.
pub static SERVICE: Dump<Control, Nat44EdVrfTablesV2Dump, Nat44EdVrfTablesV2Details> =
    Dump::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    _: Nat44EdVrfTablesV2Dump,
    out: &mut Details<Nat44EdVrfTablesV2Details>,
) {
    for (table, routes) in c.state::<Nat44>().borrow().vrfs() {
        out.send(&Nat44EdVrfTablesV2Details {
            table_vrf_id: table.get(),
            vrf_ids: routes.iter().map(|t| t.0).collect(),
        });
    }
}
