//! Routes, labels and next-hop objects that the router has refused, as a next hop was an address of
//! its own, or a table was full. The kernel says nothing about them any more: they are tried again.

use super::{KernelRoutes, Origin, labels, objects, settle};
use crate::turn::InTurn;
use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;
use thalweg_feat_ip::{TableId, Version};
use thalweg_graph::Control;

/// Most routes that are kept to be tried again. Beyond, all are taken again once there is room.
const MOST: usize = 65_536;
/// Interval at which some are tried, if nothing else has them tried.
const AGAIN: Duration = Duration::from_secs(10);

/// Routes and objects that have been refused.
#[derive(Debug, Default)]
pub(super) struct Refused {
    routes: InTurn<(TableId, IpAddr, u8)>,
    labels: InTurn<u32>,
    objects: InTurn<(Origin, u32, Version)>,
    /// There are more routes.
    has_more: bool,
    /// Some are tried soon.
    is_due: bool,
}

pub(super) fn init(c: &mut Control) {
    c.every(AGAIN, |c| {
        try_some(c);
        true
    });
}

/// Takes note of a route that was taken, or has gone.
pub(super) fn route_done(c: &Control, table: TableId, (ip, bits): (IpAddr, u8)) {
    c.state::<KernelRoutes>().borrow_mut().refused.routes.remove(&(table, ip, bits));
}

/// Takes note of a route that was refused.
pub(super) fn route(c: &Control, table: TableId, (ip, bits): (IpAddr, u8), e: &dyn Display) {
    let is_new = {
        let state = c.state::<KernelRoutes>();
        let refused = &mut state.borrow_mut().refused;
        let has_room = refused.routes.all().len() < MOST;
        refused.has_more |= !has_room;
        !has_room || refused.routes.insert((table, ip, bits))
    };
    if is_new {
        note(c, format_args!("{ip}/{bits}"), e);
    }
}

/// Takes note of whether both bindings of a label were taken.
pub(super) fn label(c: &Control, label: u32, done: Result<(), &dyn Display>) {
    let is_new = {
        let state = c.state::<KernelRoutes>();
        let labels = &mut state.borrow_mut().refused.labels;
        match done {
            Ok(()) => {
                labels.remove(&label);
                false
            }
            Err(_) => labels.insert(label),
        }
    };
    if let Err(e) = done
        && is_new
    {
        note(c, format_args!("label {label}"), e);
    }
}

/// Takes note of whether a group for packets of a version leads to the hops of an object.
pub(super) fn object(
    c: &Control,
    of @ (_, object, _): (Origin, u32, Version),
    done: Result<(), &dyn Display>,
) {
    let state = c.state::<KernelRoutes>();
    let objects = &mut state.borrow_mut().refused.objects;
    match done {
        Ok(()) => objects.remove(&of),
        Err(e) => {
            if objects.insert(of) {
                tracing::warn!("next-hop object {object} of the kernel is not taken: {e}");
            }
        }
    }
}

/// Counts a refusal, and logs it: a million may have the same reason.
fn note(c: &Control, of: impl Display, e: &dyn Display) {
    let state = c.state::<KernelRoutes>();
    let counters = &mut state.borrow_mut().counters;
    counters.refused += 1;
    if counters.refused.is_power_of_two() {
        let so_far = counters.refused;
        tracing::warn!("the kernel's route of {of} is not taken: {e} ({so_far} so far)");
    }
}

/// Tries some again, and more at once as long as some are taken.
fn try_some(c: &mut Control) {
    let state = c.state::<KernelRoutes>();
    let (routes, labels, objects) = {
        let refused = &mut state.borrow_mut().refused;
        (refused.routes.some(), refused.labels.some(), refused.objects.some())
    };
    for (origin, object, version) in &objects {
        objects::lead_again(c, *origin, *object, *version);
    }
    for (table, ip, bits) in &routes {
        settle(c, table.get(), (*ip, *bits));
    }
    for label in &labels {
        labels::settle(c, *label);
    }
    let (is_any_taken, has_room) = {
        let refused = &mut state.borrow_mut().refused;
        let is_left = (
            objects.iter().all(|one| refused.objects.all().contains(one)),
            routes.iter().all(|one| refused.routes.all().contains(one)),
            labels.iter().all(|one| refused.labels.all().contains(one)),
        );
        let is_empty = refused.routes.all().is_empty();
        (is_left != (true, true, true), is_empty && std::mem::take(&mut refused.has_more))
    };
    if has_room {
        state.borrow().offer_all();
    }
    if is_any_taken {
        c.after(Duration::ZERO, try_some);
    }
}

/// Tries some again soon: there may be room now. Many tables may go at once.
pub(super) fn try_again(c: &mut Control) {
    {
        let state = c.state::<KernelRoutes>();
        let Refused { routes, labels, objects, is_due, .. } = &mut state.borrow_mut().refused;
        let has_none =
            routes.all().is_empty() && labels.all().is_empty() && objects.all().is_empty();
        if has_none || std::mem::replace(is_due, true) {
            return;
        }
    }
    c.after(Duration::ZERO, |c| {
        c.state::<KernelRoutes>().borrow_mut().refused.is_due = false;
        try_some(c);
    });
}
