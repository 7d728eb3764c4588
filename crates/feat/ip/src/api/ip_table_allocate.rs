//! `ip_table_allocate`: adds a routing table and returns its id.

use crate::Ip;
use crate::api_types::{IP, IpTable, add_del_table};
use crate::family::{Version, family, for_version};
use thalweg_api::{Call, Message, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::Address;

/// Requests a table.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpTableAllocate {
    /// The table; all ones as its id picks a free one.
    pub table: IpTable,
}

/// Reply to [`IpTableAllocate`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct IpTableAllocateReply {
    /// The table.
    pub table: IpTable,
}

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
