//! `ip_table_replace_end`: ends replacing the routes of a table.

use crate::api_types::{IP, IpTable, finish};
use crate::family::{Version, for_version};
use crate::replace;
use thalweg_api::{Call, Later, Message};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Deletes the configured routes that were not added since `ip_table_replace_begin`.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpTableReplaceEnd {
    /// The table.
    pub table: IpTable,
}

/// The service.
pub static SERVICE: Call<Control, IpTableReplaceEnd, IpTableReplaceEndReply> =
    Call::later(&IP, handle);

fn handle(c: &mut Control, rq: IpTableReplaceEnd, later: Later<IpTableReplaceEndReply>) {
    let version = Version::of_flag(rq.table.is_ip6);
    finish(c, &rq.table, later, |c, table, done| {
        for_version!(version, replace::finish(c, TableId(table), done))
    });
}
