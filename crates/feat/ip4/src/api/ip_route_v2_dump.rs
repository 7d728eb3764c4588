//! `ip_route_v2_dump`: all routes of a table, with who says that they exist.

use crate::Ip4;
use crate::api_types::{IP, IpRouteV2, IpTable, describe, prefixes, route, source_id};
use thalweg_api::{Details, Dump, Message, Walk};
use thalweg_graph::Control;

/// Asks for routes.
#[derive(Debug, Message)]
#[api(request, in_progress)]
pub struct IpRouteV2Dump {
    /// Only those of this source, by number; 0 for all.
    pub src: u8,
    /// Of this table.
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

fn handle(c: &mut Control, rq: IpRouteV2Dump, mut out: Details<IpRouteV2Details>) -> Walk<Control> {
    let (table, wanted) = (rq.table.table_id, rq.src);
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
            let Some(view) = route(&ip4, table, prefix) else { continue };
            let src = source_id(view.source);
            if wanted == 0 || wanted == src {
                let route = IpRouteV2 { src, ..describe(table, &view).into() };
                out.send(&IpRouteV2Details { route });
            }
        }
        true
    })
}
