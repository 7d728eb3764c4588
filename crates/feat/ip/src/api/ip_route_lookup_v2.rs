//! `ip_route_lookup_v2`: finds a route.

use crate::api_types::lookup;
use crate::message_types::{IP, IpRouteLookupV2, IpRouteLookupV2Reply};
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpRouteLookupV2, IpRouteLookupV2Reply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpRouteLookupV2) -> Result<IpRouteLookupV2Reply, Retval> {
    let shown = lookup(c, TableId(rq.table_id), rq.exact != 0, rq.prefix)?;
    Ok(IpRouteLookupV2Reply { route: shown.with_source() })
}
