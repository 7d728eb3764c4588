//! Data for the service: everything if settings change, and one interface if that changes.

use super::{Identity, SFlow};
use crate::reasons::{self, Reasons};
use crate::service::{PortSetup, Setup};
use std::sync::Arc;
use std::time::Duration;
use thalweg_device::{SwIfIndex, interface};
use thalweg_graph::Control;

/// Returns the reasons why packets are dropped, with those of new nodes.
fn renew_reasons(c: &Control) -> Arc<Reasons> {
    let state = c.state::<SFlow>();
    if state.borrow().reasons_of != Some(c.node_changes()) {
        let mut state = state.borrow_mut();
        state.reasons = Arc::new(reasons::all(c));
        state.reasons_of = Some(c.node_changes());
    }
    let state = state.borrow();
    state.reasons.clone()
}

/// Returns the service's data about an interface; `None` if that is gone.
fn port_setup(c: &Control, state: &SFlow, sw_if: SwIfIndex) -> Option<PortSetup> {
    let Identity { generation, born, .. } = *state.identities.get(&sw_if)?;
    let view = interface::view(c, sw_if).ok()?;
    // Without any twin, programs are given the router's numbers as the system's.
    let os_index = view.twin.or_else(|| state.twins.is_empty().then_some(sw_if.get()));
    let enabled = state.ports.contains_key(&sw_if);
    Some(PortSetup { view, enabled, generation, born, os_index })
}

/// Returns the service's data about everything.
pub(super) fn setup(c: &Control) -> Setup {
    let reasons = renew_reasons(c);
    let state = c.state::<SFlow>();
    let state = state.borrow();
    Setup {
        polling_interval: state.settings.polling_interval,
        export: state.settings.export.clone(),
        netlink: state.settings.netlink,
        ports: state.identities.keys().filter_map(|i| port_setup(c, &state, *i)).collect(),
        reasons,
        drop_limit: state.settings.drop_limit,
        sub_interfaces: state.settings.sub_interfaces,
    }
}

/// Sets the service up for a change of an interface, or its end.
pub(super) fn follow(c: &mut Control, sw_if: SwIfIndex) {
    {
        let state = c.state::<SFlow>();
        let state = state.borrow();
        if let Ok(service) = &state.service {
            service.follow(sw_if, port_setup(c, &state, sw_if));
        }
    }
    follow_reasons(c);
}

/// Time in which changes of nodes are collected.
const SETTLE: Duration = Duration::from_millis(10);

/// Gives the service the reasons of new nodes: at once, and once more for all that follow shortly,
/// as there are many.
fn follow_reasons(c: &mut Control) {
    let state = c.state::<SFlow>();
    if state.borrow().reasons_of == Some(c.node_changes())
        || std::mem::replace(&mut state.borrow_mut().settling, true)
    {
        return;
    }
    let reasons = renew_reasons(c);
    if let Ok(service) = &state.borrow().service {
        service.explain(reasons);
    }
    c.after(SETTLE, |c| {
        c.state::<SFlow>().borrow_mut().settling = false;
        follow_reasons(c);
    });
}

pub(crate) fn publish(c: &Control) {
    let setup = setup(c);
    if let Ok(service) = &c.state::<SFlow>().borrow().service {
        service.configure(setup);
    }
}
