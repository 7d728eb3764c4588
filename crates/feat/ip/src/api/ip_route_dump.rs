//! `ip_route_dump`: lists the routes of a table.

use crate::api_types::{IP, IpRoute, IpTable, walk};
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
    walk(c, &rq.table, out, |shown, out| out.send(&IpRouteDetails { route: shown.route }))
}
