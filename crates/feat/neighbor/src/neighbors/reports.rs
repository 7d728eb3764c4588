//! Reports and requests from workers.

use super::actions::{fail, owner};
use super::{Neighbors, can_resolve, resolver, update};
use crate::Version;
use crate::messages::{Asked, NeighborReport, ReportKind, ResetReports};
use crate::table::Waiter;
use std::time::Duration;
use thalweg_device::interface;
use thalweg_graph::{Control, Event, clock};

pub(super) fn handle_report(c: &mut Control, event: &Event) {
    let Some(NeighborReport { kind, mac, ip }) = NeighborReport::decode(event.bytes()) else {
        return;
    };
    let sw_if = event.sw_if;
    match kind {
        ReportKind::Sender(origin) => {
            // The report may be older than the last change of addresses, or of the link.
            let peer = resolver(c, ip).is_ok_and(|r| r.is_peer(c, sw_if, ip));
            if peer && interface::is_current(c, sw_if, event.at) {
                update(c, |t, now| t.learn((sw_if, ip), mac, origin, now));
            } else if peer {
                // The sender may be heard again right after this.
                reset_reports(c);
            }
        }
        ReportKind::Conflict => {
            c.state::<Neighbors>().borrow_mut().table.count_conflict(Version::of_ip(ip));
            let (name, mac) = (c.interface_name(sw_if), mac);
            tracing::warn!("{name}: our address {ip} is also used by {mac}");
        }
    }
}

pub(super) fn handle_request(c: &mut Control, event: &Event) {
    let Some(Asked { request, node }) = Asked::decode(event.bytes()) else { return };
    let waiter = Waiter { worker: event.worker, node, request };
    let key @ (sw_if, ip) = (request.sw_if, request.ip);
    let owner = request.dpo.and_then(|dpo| owner(c, dpo));
    if request.dpo.is_some() && owner != Some((sw_if, Some(ip))) {
        // The adjacency was deleted meanwhile.
        fail(c, &[waiter], Duration::ZERO);
    } else if can_resolve(c, key) {
        let sent = request.dpo.is_none();
        update(c, |t, now| t.request(key, Some(waiter), sent, now));
    } else {
        fail(c, &[waiter], Duration::from_secs(1));
    }
}

/// Least time between messages to all workers, however many interfaces change.
const RESET_INTERVAL: Duration = Duration::from_millis(10);

/// Makes workers report all senders again: what they reported was not learned, or forgotten.
pub(super) fn reset_reports(c: &mut Control) {
    let state = c.state::<Neighbors>();
    let now = clock::now();
    let last = state.borrow().reset;
    match last {
        Some((_, true)) => {}
        Some((at, false)) if now < at + RESET_INTERVAL => {
            state.borrow_mut().reset = Some((at, true));
            c.after(RESET_INTERVAL, reset_reports_now);
        }
        _ => reset_reports_now(c),
    }
}

/// Refuses to start without a node that a resolver names.
pub(crate) fn check_reporters(c: &mut Control) {
    let resolvers = c.state::<Neighbors>().borrow().resolvers;
    for name in resolvers.into_iter().flatten().flat_map(|resolver| resolver.reporters()) {
        c.named_node(name, "a resolver of neighbours");
    }
}

fn reset_reports_now(c: &mut Control) {
    let state = c.state::<Neighbors>();
    state.borrow_mut().reset = Some((clock::now(), false));
    let resolvers = state.borrow().resolvers;
    let nodes = resolvers.into_iter().flatten().flat_map(|resolver| resolver.reporters());
    for node in nodes.filter_map(|name| c.node(name)).collect::<Vec<_>>() {
        c.message_all(node, |_| Box::new(ResetReports));
    }
}
