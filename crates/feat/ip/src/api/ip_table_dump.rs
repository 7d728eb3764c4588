//! `ip_table_dump`: lists routing tables.

use crate::Ip;
use crate::api_types::table;
use crate::message_types::{IP, IpTableDetails, IpTableDump};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;
use thalweg_tables::Address;

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
