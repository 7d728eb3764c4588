//! `mpls_table_dump`: lists label tables.

use crate::message_types::{MPLS, MplsTable, MplsTableDetails, MplsTableDump};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, MplsTableDump, MplsTableDetails> = Dump::new(&MPLS, handle);

fn handle(c: &mut Control, _: MplsTableDump, out: &mut Details<MplsTableDetails>) {
    for (id, name) in c.state::<crate::Mpls>().borrow().tables() {
        let mt_table = MplsTable { mt_table_id: id.get(), mt_name: name.into() };
        out.send(&MplsTableDetails { mt_table });
    }
}
