//! `ip_route_v2_dump`: lists the routes of a table with their sources.

use crate::api_types::{IP, IpRouteV2, IpTable, walk};
use thalweg_api::{Details, Dump, Message, Walk};
use thalweg_graph::Control;

/// Requests routes.
#[derive(Debug, Message)]
#[api(request, in_progress)]
pub struct IpRouteV2Dump {
    /// Number of a source; 0 for all.
    pub src: u8,
    /// The table.
    pub table: IpTable,
}

/// A route.
#[derive(Debug, Message)]
#[api(details, in_progress)]
pub struct IpRouteV2Details {
    /// The route.
    pub route: IpRouteV2,
}

/// The service.
pub static SERVICE: Dump<Control, IpRouteV2Dump, IpRouteV2Details> = Dump::slices(&IP, handle);

fn handle(c: &mut Control, rq: IpRouteV2Dump, out: Details<IpRouteV2Details>) -> Walk<Control> {
    let wanted = rq.src;
    walk(c, &rq.table, out, move |shown, out| {
        if wanted == 0 || wanted == shown.src {
            out.send(&IpRouteV2Details { route: shown.with_source() });
        }
    })
}
