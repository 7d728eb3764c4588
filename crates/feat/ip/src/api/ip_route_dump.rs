//! `ip_route_dump`: lists the routes of a table.

use crate::api_types::walk;
use crate::message_types::{IP, IpRouteDetails, IpRouteDump};
use thalweg_api::{Details, Dump, Walk};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, IpRouteDump, IpRouteDetails> = Dump::slices(&IP, handle);

fn handle(c: &mut Control, rq: IpRouteDump, out: Details<IpRouteDetails>) -> Walk<Control> {
    walk(c, &rq.table, out, |shown, out| out.send(&IpRouteDetails { route: shown.route }))
}
