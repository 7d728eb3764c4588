//! `mpls_route_dump`: lists the labels of a table.

use crate::api_types::describe;
use crate::message_types::{MPLS, MplsRouteDetails, MplsRouteDump};
use crate::{LabelView, Mpls};
use thalweg_api::{Details, Dump, Walk};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_wire::mpls::Label;

/// Labels sent at once.
const AT_ONCE: usize = 64;

/// The service.
pub static SERVICE: Dump<Control, MplsRouteDump, MplsRouteDetails> = Dump::slices(&MPLS, handle);

fn handle(_: &mut Control, rq: MplsRouteDump, mut out: Details<MplsRouteDetails>) -> Walk<Control> {
    let (table, mut from) = (TableId(rq.table.mt_table_id), Label(0));
    Box::new(move |c| {
        let mpls = c.state::<Mpls>();
        let all: Vec<LabelView> = mpls.borrow().labels(table, from).take(AT_ONCE + 1).collect();
        // Both of a label's entries are sent at once.
        let next = all.get(AT_ONCE).map(|view| view.key.label);
        for view in all.iter().take_while(|view| Some(view.key.label) != next) {
            out.send(&MplsRouteDetails { mr_route: describe(table, view) });
        }
        from = next.unwrap_or(from);
        next.is_some()
    })
}
