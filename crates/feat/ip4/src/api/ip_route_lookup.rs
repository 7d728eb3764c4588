//! `ip_route_lookup`: finds a route.

use crate::api_types::{IP, IpRoute, describe, lookup};
use thalweg_api::types::Prefix;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for a route.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpRouteLookup {
    /// In this table.
    pub table_id: u32,
    /// Of exactly this prefix; else the longest that covers it.
    pub exact: u8,
    /// The prefix.
    pub prefix: Prefix,
}

/// Answers [`IpRouteLookup`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct IpRouteLookupReply {
    /// The route.
    pub route: IpRoute,
}

/// The service.
pub static SERVICE: Call<Control, IpRouteLookup, IpRouteLookupReply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpRouteLookup) -> Result<IpRouteLookupReply, Retval> {
    let view = lookup(c, rq.table_id, rq.exact != 0, rq.prefix)?;
    Ok(IpRouteLookupReply { route: describe(rq.table_id, &view) })
}
