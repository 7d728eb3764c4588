//! `ip_table_allocate`: adds a routing table and returns its id.

use crate::Ip4;
use crate::api_types::{IP, IpTable, add_del_table, only_ip4};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

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
    only_ip4(rq.table.is_ip6)?;
    let mut table = rq.table;
    if table.table_id == u32::MAX {
        let taken = c.state::<Ip4>().borrow().table_ids();
        let free = (1..u32::MAX).find(|id| !taken.contains(id));
        table.table_id = free.ok_or(Retval::LIMIT_EXCEEDED)?;
    }
    add_del_table(c, true, &table)?;
    Ok(IpTableAllocateReply { table })
}
