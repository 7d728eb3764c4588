//! `mpls_table_dump`: lists label tables.

use crate::api_types::{MPLS, MplsTable};
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Requests label tables.
#[derive(Debug, Message)]
#[api(request)]
pub struct MplsTableDump;

/// A label table.
#[derive(Debug, Message)]
#[api(details)]
pub struct MplsTableDetails {
    /// The table.
    pub mt_table: MplsTable,
}

/// The service.
pub static SERVICE: Dump<Control, MplsTableDump, MplsTableDetails> = Dump::new(&MPLS, handle);

fn handle(c: &mut Control, _: MplsTableDump, out: &mut Details<MplsTableDetails>) {
    for (id, name) in c.state::<crate::Mpls>().borrow().tables() {
        let mt_table = MplsTable { mt_table_id: id.get(), mt_name: name.into() };
        out.send(&MplsTableDetails { mt_table });
    }
}
