//! `ip_table_dump`: lists routing tables.

use crate::Ip;
use crate::api_types::{IP, IpTable, table};
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;
use thalweg_tables::Address;

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
    list::<u32>(c, out);
    list::<u128>(c, out);
}

fn list<A: Address>(c: &Control, out: &mut Details<IpTableDetails>) {
    let ip = c.state::<Ip<A>>();
    let ip = ip.borrow();
    let each = |id| out.send(&IpTableDetails { table: table(&ip, id) });
    ip.table_ids().into_iter().for_each(each);
}
