//! `ip_table_flush`: deletes the configured routes of a table.

use crate::api_types::{IP, IpTable, finish};
use crate::family::{Version, for_version};
use crate::replace;
use thalweg_api::{Call, Later, Message};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Deletes all configured routes of a table.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpTableFlush {
    /// The table.
    pub table: IpTable,
}

/// The service.
pub static SERVICE: Call<Control, IpTableFlush, IpTableFlushReply> = Call::later(&IP, handle);

fn handle(c: &mut Control, rq: IpTableFlush, later: Later<IpTableFlushReply>) {
    let version = Version::of_flag(rq.table.is_ip6);
    finish(c, &rq.table, later, |c, table, done| {
        for_version!(version, replace::flush(c, TableId(table), done))
    });
}
