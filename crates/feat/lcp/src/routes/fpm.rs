//! Routes that FRRouting's `zebra` sends itself (FPM): one listener in each namespace with twins.

use super::{Followed, KernelRoutes, Origin, SLICE, labels, objects, settle, take};
use crate::options;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use thalweg_device_linux::NamespaceId;
use thalweg_device_linux::routes::{Change, Limits, RouteWalk, Routes, Visited};
use thalweg_graph::Control;

/// Routes that are no longer followed.
pub(super) struct Leaving {
    routes: Routes,
    walk: RouteWalk,
    /// Objects that go with them.
    objects: Option<Origin>,
}

/// Sets the address at which the router listens to `zebra` in each namespace with twins; `None` for
/// none. Routes from there that the kernel has as well forward meanwhile.
pub fn set_fpm(c: &mut Control, address: Option<SocketAddr>) {
    if options::get(c).fpm == address {
        return;
    }
    options::change(c, |options| options.fpm = address);
    let state = c.state::<KernelRoutes>();
    let all: Vec<NamespaceId> = state.borrow().followed.keys().copied().collect();
    for id in all {
        let old = state.borrow_mut().followed.get_mut(&id).and_then(|of| of.fpm.take());
        if let Some((number, routes)) = old {
            leave(c, routes, Some(Origin { id, fpm: Some(number) }));
        }
        start(c, id);
    }
}

/// Sets for how many seconds routes of a lost connection stay.
pub fn set_fpm_hold(c: &mut Control, seconds: u32) {
    options::change(c, |options| options.fpm_hold = seconds);
    let hold = Duration::from_secs(seconds.into());
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let all = state.followed.values().filter_map(|of| of.fpm.as_ref());
    all.for_each(|(_, routes)| routes.hold(hold));
}

/// Begins to listen in a namespace, if an address is set.
pub(super) fn start(c: &Control, id: NamespaceId) {
    let options = options::get(c);
    let Some(address) = options.fpm else {
        let state = c.state::<KernelRoutes>();
        let mut state = state.borrow_mut();
        state.followed.values_mut().for_each(|of| _ = of.no_listener.succeed());
        return;
    };
    let hold = Duration::from_secs(options.fpm_hold.into());
    let state = c.state::<KernelRoutes>();
    let mut state = state.borrow_mut();
    state.listeners = state.listeners.wrapping_add(1);
    let number = state.listeners;
    let Some(of) = state.followed.get_mut(&id) else { return };
    let (remote, origin) = (c.remote(), Origin { id, fpm: Some(number) });
    let announce = move || remote.submit(move |c| take(c, origin));
    match Routes::listen(of.namespace.as_ref(), Limits::default(), address, hold, announce) {
        Ok(routes) => {
            of.fpm = Some((number, routes));
            of.no_listener.succeed();
        }
        Err(e) => {
            if of.no_listener.fail() {
                tracing::error!("FPM: namespace `{}' has no listener for now: {e}", of.name);
            }
        }
    }
}

/// Tries again to listen, where the system has refused a thread.
pub(super) fn listen_again(c: &Control) {
    let all: Vec<NamespaceId> = {
        let state = c.state::<KernelRoutes>();
        let state = state.borrow();
        let is_due = |of: &Followed| of.no_listener.left().is_some_and(|left| left.is_zero());
        state.followed.iter().filter(|(_, of)| is_due(of)).map(|(id, _)| *id).collect()
    };
    all.into_iter().for_each(|id| start(c, id));
}

/// Has routes of `zebra` in a namespace taken again, as links have other roles.
pub(super) fn offer(c: &Control, id: NamespaceId) {
    let state = c.state::<KernelRoutes>();
    let state = state.borrow();
    let fpm = state.followed.get(&id).and_then(|of| of.fpm.as_ref());
    fpm.into_iter().for_each(|(_, routes)| routes.offer(None));
}

/// Removes routes that are no longer followed, and then their next-hop objects.
pub(super) fn leave(c: &mut Control, routes: Routes, objects: Option<Origin>) {
    let walk = routes.walk();
    let is_first = {
        let state = c.state::<KernelRoutes>();
        let leaving = &mut state.borrow_mut().leaving;
        leaving.push_back(Leaving { routes, walk, objects });
        leaving.len() == 1
    };
    if is_first {
        leave_some(c);
    }
}

/// Removes some, for about a millisecond.
fn leave_some(c: &mut Control) {
    let (begin, state) = (Instant::now(), c.state::<KernelRoutes>());
    while begin.elapsed() < SLICE {
        let mut some = Visited::default();
        let over = {
            let leaving = &mut state.borrow_mut().leaving;
            let Some(Leaving { routes, walk, .. }) = leaving.front_mut() else { return };
            let more = routes.some(walk, &mut some);
            if more { None } else { leaving.pop_front() }
        };
        for Change { table, destination, .. } in some.routes {
            settle(c, table, destination);
        }
        for change in some.labels {
            labels::settle(c, change.label);
        }
        if let Some(origin) = over.and_then(|of| of.objects) {
            objects::forget(c, origin);
        }
    }
    c.after(Duration::ZERO, leave_some);
}
