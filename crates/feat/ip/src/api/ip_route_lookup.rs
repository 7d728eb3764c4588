//! `ip_route_lookup`: finds a route.

use crate::api_types::{IP, IpRoute, lookup};
use thalweg_api::types::Prefix;
use thalweg_api::{Call, Message, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Requests a route.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpRouteLookup {
    /// Table id.
    pub table_id: u32,
    /// Exact match; otherwise longest prefix match.
    pub exact: u8,
    /// The prefix.
    pub prefix: Prefix,
}

/// Reply to [`IpRouteLookup`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct IpRouteLookupReply {
    /// The route.
    pub route: IpRoute,
}

/// The service.
pub static SERVICE: Call<Control, IpRouteLookup, IpRouteLookupReply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpRouteLookup) -> Result<IpRouteLookupReply, Retval> {
    let shown = lookup(c, TableId(rq.table_id), rq.exact != 0, rq.prefix)?;
    Ok(IpRouteLookupReply { route: shown.route })
}
