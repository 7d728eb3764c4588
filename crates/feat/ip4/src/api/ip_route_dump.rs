//! `ip_route_dump`: lists the routes of a table.

use crate::api_types::{IP, IpRoute, IpTable, describe, walk};
use thalweg_api::{Details, Dump, Message, Walk};
use thalweg_graph::Control;

/// Requests routes.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpRouteDump {
    /// The table.
    pub table: IpTable,
}

/// A route.
#[derive(Debug, Message)]
#[api(details)]
pub struct IpRouteDetails {
    /// The route.
    pub route: IpRoute,
}

/// The service.
pub static SERVICE: Dump<Control, IpRouteDump, IpRouteDetails> = Dump::slices(&IP, handle);

fn handle(c: &mut Control, rq: IpRouteDump, out: Details<IpRouteDetails>) -> Walk<Control> {
    let table = rq.table.table_id;
    walk(c, &rq.table, out, move |view, out| {
        out.send(&IpRouteDetails { route: describe(table, view) });
    })
}
