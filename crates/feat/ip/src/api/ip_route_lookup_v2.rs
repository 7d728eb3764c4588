//! `ip_route_lookup_v2`: finds a route.

use crate::api_types::{IP, IpRouteV2, lookup};
use thalweg_api::types::Prefix;
use thalweg_api::{Call, Message, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Requests a route.
#[derive(Debug, Message)]
#[api(request, in_progress)]
pub struct IpRouteLookupV2 {
    /// Table id.
    pub table_id: u32,
    /// Exact match; otherwise longest prefix match.
    pub exact: u8,
    /// The prefix.
    pub prefix: Prefix,
}

/// Reply to [`IpRouteLookupV2`].
#[derive(Debug, Default, Message)]
#[api(reply, in_progress)]
pub struct IpRouteLookupV2Reply {
    /// The route.
    pub route: IpRouteV2,
}

/// The service.
pub static SERVICE: Call<Control, IpRouteLookupV2, IpRouteLookupV2Reply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpRouteLookupV2) -> Result<IpRouteLookupV2Reply, Retval> {
    let shown = lookup(c, TableId(rq.table_id), rq.exact != 0, rq.prefix)?;
    Ok(IpRouteLookupV2Reply { route: shown.with_source() })
}
