//! `nat44_ed_vrf_tables_dump`: lists the routes between routing tables.

use crate::Nat44;
use crate::api_types::NAT44_ED;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, deprecated)]
pub struct Nat44EdVrfTablesDump;

/// Entry of the dump.
#[derive(Debug, Message)]
#[api(details, deprecated)]
pub struct Nat44EdVrfTablesDetails {
    /// Routing table of the hosts.
    pub table_vrf_id: u32,
    /// Tables that they reach, in the order they are tried.
    #[api(count = "n_vrf_ids: u32")]
    pub vrf_ids: Vec<u32>,
}

/// The service.
pub static SERVICE: Dump<Control, Nat44EdVrfTablesDump, Nat44EdVrfTablesDetails> =
    Dump::new(&NAT44_ED, handle);

fn handle(c: &mut Control, _: Nat44EdVrfTablesDump, out: &mut Details<Nat44EdVrfTablesDetails>) {
    for (table, routes) in c.state::<Nat44>().borrow().vrfs() {
        out.send(&Nat44EdVrfTablesDetails {
            table_vrf_id: table.get(),
            vrf_ids: routes.iter().map(|t| t.0).collect(),
        });
    }
}
