//! `nat44_ed_vrf_tables_v2_dump`: lists the routes between routing tables.

use crate::Nat44;
use crate::message_types::{NAT44_ED, Nat44EdVrfTablesV2Details, Nat44EdVrfTablesV2Dump};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

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
