//! `ip_table_add_del_v2`: adds a routing table, or deletes it.

use crate::api_types::{IP, IpTable, add_del_table};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Adds a table or deletes it.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpTableAddDelV2 {
    /// The table.
    pub table: IpTable,
    /// A table for multicast is to come with it; there is none.
    #[api(default = "true")]
    pub create_mfib: bool,
    /// Which of both.
    #[api(default = "true")]
    pub is_add: bool,
}

/// The service.
pub static SERVICE: Call<Control, IpTableAddDelV2, IpTableAddDelV2Reply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpTableAddDelV2) -> Result<IpTableAddDelV2Reply, Retval> {
    add_del_table(c, rq.is_add, &rq.table)?;
    Ok(IpTableAddDelV2Reply)
}
