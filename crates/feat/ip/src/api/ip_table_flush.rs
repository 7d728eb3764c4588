//! `ip_table_flush`: deletes the configured routes of a table.

use crate::api_types::finish;
use crate::family::{Version, for_version};
use crate::message_types::{IP, IpTableFlush, IpTableFlushReply};
use crate::replace;
use thalweg_api::{Call, Later};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpTableFlush, IpTableFlushReply> = Call::later(&IP, handle);

fn handle(c: &mut Control, rq: IpTableFlush, later: Later<IpTableFlushReply>) {
    let version = Version::of_flag(rq.table.is_ip6);
    finish(c, &rq.table, later, |c, table, done| {
        for_version!(version, replace::flush(c, TableId(table), done))
    });
}
