//! `ip_route_lookup`: finds a route.

use crate::api_types::lookup;
use crate::message_types::{IP, IpRouteLookup, IpRouteLookupReply};
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpRouteLookup, IpRouteLookupReply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpRouteLookup) -> Result<IpRouteLookupReply, Retval> {
    let shown = lookup(c, TableId(rq.table_id), rq.exact != 0, rq.prefix)?;
    Ok(IpRouteLookupReply { route: shown.route })
}
