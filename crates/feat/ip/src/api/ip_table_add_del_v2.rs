//! `ip_table_add_del_v2`: adds or deletes a routing table.

use crate::api_types::{IP, IpTable, add_del_table};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Adds or deletes a table.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpTableAddDelV2 {
    /// The table.
    pub table: IpTable,
    /// Creates a multicast table as well; ignored.
    #[api(default = "true")]
    pub create_mfib: bool,
    /// True to add, false to delete.
    #[api(default = "true")]
    pub is_add: bool,
}

/// The service.
pub static SERVICE: Call<Control, IpTableAddDelV2, IpTableAddDelV2Reply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpTableAddDelV2) -> Result<IpTableAddDelV2Reply, Retval> {
    add_del_table(c, rq.is_add, &rq.table)?;
    Ok(IpTableAddDelV2Reply)
}
