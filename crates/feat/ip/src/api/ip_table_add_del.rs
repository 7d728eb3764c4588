//! `ip_table_add_del`: adds or deletes a routing table.

use crate::api_types::{IP, IpTable, add_del_table};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Adds or deletes a table.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpTableAddDel {
    /// True to add, false to delete.
    #[api(default = "true")]
    pub is_add: bool,
    /// The table.
    pub table: IpTable,
}

/// The service.
pub static SERVICE: Call<Control, IpTableAddDel, IpTableAddDelReply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpTableAddDel) -> Result<IpTableAddDelReply, Retval> {
    add_del_table(c, rq.is_add, &rq.table)?;
    Ok(IpTableAddDelReply)
}
