//! `ip_table_add_del`: adds a routing table, or deletes it.

use crate::api_types::{IP, IpTable, add_del_table};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Adds a table or deletes it.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpTableAddDel {
    /// Which of both.
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
