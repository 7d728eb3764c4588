//! `ip_table_replace_begin`: starts replacing the routes of a table.

use crate::family::{Version, for_version};
use crate::message_types::{IP, IpTableReplaceBegin, IpTableReplaceBeginReply};
use crate::replace;
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpTableReplaceBegin, IpTableReplaceBeginReply> =
    Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpTableReplaceBegin) -> Result<IpTableReplaceBeginReply, Retval> {
    let (version, table) = (Version::of_flag(rq.table.is_ip6), rq.table.table_id);
    for_version!(version, replace::begin(c, TableId(table)))?;
    Ok(IpTableReplaceBeginReply)
}
