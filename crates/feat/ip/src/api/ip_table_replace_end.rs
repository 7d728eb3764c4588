//! `ip_table_replace_end`: ends replacing the routes of a table.

use crate::api_types::finish;
use crate::family::{Version, for_version};
use crate::message_types::{IP, IpTableReplaceEnd, IpTableReplaceEndReply};
use crate::replace;
use thalweg_api::{Call, Later};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpTableReplaceEnd, IpTableReplaceEndReply> =
    Call::later(&IP, handle);

fn handle(c: &mut Control, rq: IpTableReplaceEnd, later: Later<IpTableReplaceEndReply>) {
    let version = Version::of_flag(rq.table.is_ip6);
    finish(c, &rq.table, later, |c, table, done| {
        for_version!(version, replace::finish(c, TableId(table), done))
    });
}
