//! `nat44_ed_vrf_tables_dump`: lists the routes between routing tables.

use crate::Nat44;
use crate::message_types::{NAT44_ED, Nat44EdVrfTablesDetails, Nat44EdVrfTablesDump};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

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
