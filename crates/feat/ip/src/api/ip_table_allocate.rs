//! `ip_table_allocate`: adds a routing table and returns its id.

use crate::Ip;
use crate::api_types::add_del_table;
use crate::family::{Version, family, for_version};
use crate::message_types::{IP, IpTableAllocate, IpTableAllocateReply};
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::Address;

/// The service.
pub static SERVICE: Call<Control, IpTableAllocate, IpTableAllocateReply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpTableAllocate) -> Result<IpTableAllocateReply, Retval> {
    let mut table = rq.table;
    if table.table_id == u32::MAX {
        table.table_id = for_version!(Version::of_flag(table.is_ip6), free_id(c))?;
    }
    add_del_table(c, true, &table)?;
    Ok(IpTableAllocateReply { table })
}

fn free_id<A: Address>(c: &Control) -> Result<u32, Retval> {
    family::<A>(c)?;
    let ip = c.state::<Ip<A>>();
    let ip = ip.borrow();
    let free = (1..u32::MAX).find(|id| ip.serial(TableId(*id)).is_none());
    free.ok_or(Retval::LIMIT_EXCEEDED)
}
