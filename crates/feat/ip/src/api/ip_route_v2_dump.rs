//! `ip_route_v2_dump`: lists the routes of a table with their sources.

use crate::api_types::walk;
use crate::message_types::{IP, IpRouteV2Details, IpRouteV2Dump};
use thalweg_api::{Details, Dump, Walk};
use thalweg_graph::Control;

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
