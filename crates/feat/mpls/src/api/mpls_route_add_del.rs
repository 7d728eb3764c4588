//! `mpls_route_add_del`: binds a label to paths, or unbinds it.

use crate::api_types::{key, vias};
use crate::message_types::{MPLS, MplsRouteAddDel, MplsRouteAddDelReply};
use crate::{Action, Mpls, MplsError, To};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

impl Default for MplsRouteAddDelReply {
    fn default() -> Self {
        Self { stats_index: u32::MAX }
    }
}

/// The service.
pub static SERVICE: Call<Control, MplsRouteAddDel, MplsRouteAddDelReply> = Call::new(&MPLS, handle);

fn handle(c: &mut Control, rq: MplsRouteAddDel) -> Result<MplsRouteAddDelReply, Retval> {
    let (table, key) = key(&rq.mr_route)?;
    let vias = || vias(&rq.mr_route);
    if rq.mr_is_add {
        crate::add_label(c, table, key, vias()?, !rq.mr_is_multipath)?;
    } else {
        let vias = if rq.mr_is_multipath { vias()? } else { Vec::new() };
        match crate::del_label(c, table, key, &vias) {
            // A label that is gone need not be deleted: clients repeat doubtful requests.
            Err(MplsError::NoLabel(..)) => {}
            done => done?,
        }
    }
    let view = c.state::<Mpls>().borrow().labels(table, key.label).find(|v| v.key == key);
    let stats_index = match view.map(|view| view.action) {
        Some(
            Action::Swap(_, d) | Action::Member(_, d) | Action::Ip(_, To::Sent(d)) | Action::Pop(d),
        ) => d.get(),
        _ => u32::MAX,
    };
    Ok(MplsRouteAddDelReply { stats_index })
}
