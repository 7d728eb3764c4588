//! `ip_table_replace_begin`: starts replacing the routes of a table.

use crate::api_types::{IP, IpTable};
use crate::family::{Version, for_version};
use crate::replace;
use thalweg_api::{Call, Message, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Marks all routes of a table. `ip_table_replace_end` deletes those that were not added again.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpTableReplaceBegin {
    /// The table.
    pub table: IpTable,
}

/// The service.
pub static SERVICE: Call<Control, IpTableReplaceBegin, IpTableReplaceBeginReply> =
    Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpTableReplaceBegin) -> Result<IpTableReplaceBeginReply, Retval> {
    let (version, table) = (Version::of_flag(rq.table.is_ip6), rq.table.table_id);
    for_version!(version, replace::begin(c, TableId(table)))?;
    Ok(IpTableReplaceBeginReply)
}
