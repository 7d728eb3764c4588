//! `mpls_route_add_del`: binds a label to paths, or unbinds it.

use crate::api_types::{MPLS, MplsRoute, key, vias};
use crate::{Action, Mpls, MplsError, To};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Binds a label to paths, or unbinds it.
#[derive(Debug, Message)]
#[api(request)]
pub struct MplsRouteAddDel {
    /// True to bind.
    pub mr_is_add: bool,
    /// Adds paths, or deletes single paths; otherwise replaces all paths, or deletes the label.
    pub mr_is_multipath: bool,
    /// The label.
    pub mr_route: MplsRoute,
}

/// Reply to [`MplsRouteAddDel`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct MplsRouteAddDelReply {
    /// Index of the label's counters; all ones for none.
    pub stats_index: u32,
}

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
            // What is gone need not be deleted: clients repeat what they are not sure of.
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
