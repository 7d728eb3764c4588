//! `ip_table_dump`: lists routing tables.

use crate::Ip4;
use crate::api_types::{IP, IpTable, table};
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Requests tables.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpTableDump;

/// A table.
#[derive(Debug, Message)]
#[api(details)]
pub struct IpTableDetails {
    /// The table.
    pub table: IpTable,
}

/// The service.
pub static SERVICE: Dump<Control, IpTableDump, IpTableDetails> = Dump::new(&IP, handle);

fn handle(c: &mut Control, _: IpTableDump, out: &mut Details<IpTableDetails>) {
    let ids = c.state::<Ip4>().borrow().table_ids();
    ids.into_iter().for_each(|id| out.send(&IpTableDetails { table: table(c, id) }));
}
