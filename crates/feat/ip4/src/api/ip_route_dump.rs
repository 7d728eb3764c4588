//! `ip_route_dump`: all routes of a table.

use crate::Ip4;
use crate::api_types::{IP, IpRoute, IpTable, describe, prefixes, route};
use thalweg_api::{Details, Dump, Message, Walk};
use thalweg_graph::Control;

/// Asks for routes.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpRouteDump {
    /// Of this table.
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

fn handle(c: &mut Control, rq: IpRouteDump, mut out: Details<IpRouteDetails>) -> Walk<Control> {
    let table = rq.table.table_id;
    let mut prefixes = prefixes(c, &rq.table).into_iter();
    Box::new(move |c| {
        let ip4 = c.state::<Ip4>();
        let ip4 = ip4.borrow();
        // As many as fit well into the main thread's slice.
        for _ in 0..1024 {
            if out.is_full() {
                break;
            }
            let Some(prefix) = prefixes.next() else { return false };
            if let Some(view) = route(&ip4, table, prefix) {
                out.send(&IpRouteDetails { route: describe(table, &view) });
            }
        }
        true
    })
}
