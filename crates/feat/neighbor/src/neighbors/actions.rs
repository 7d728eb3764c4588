//! Effects of a change of the table: adjacencies, subscribers, requests, and replies to the workers
//! that hold packets.

use super::{NeighborChange, Neighbors, resolver, update};
use crate::Version;
use crate::awaited::Awaited;
use crate::messages::{EndSilences, Gone, ResolveReply, ResolveRequest};
use crate::table::{Action, Key, Waiter};
use std::net::IpAddr;
use std::time::Duration;
use thalweg_device::{InterfaceView, MacAddr, SwIfIndex, interface};
use thalweg_fib::{Dpo, FibError, Forwarding, Parked, Peer};
use thalweg_graph::{Control, Inject, NodeId, clock};

pub(super) fn perform(c: &mut Control, action: Action) {
    match action {
        Action::Resolved { key, waiters, revived } => {
            match publish(c, key) {
                Ok(Some(dpo)) => release(c, key, dpo, &waiters, revived),
                // A later action of the same round has removed the neighbour.
                Ok(None) => fail(c, &waiters, Duration::ZERO),
                Err(e) => {
                    tracing::warn!("neighbour {} dropped: {e}", key.1);
                    fail(c, &waiters, Duration::from_secs(1));
                    update(c, |t, _| t.remove(key));
                }
            }
        }
        Action::Gone { key, dpo, is_static } => withdraw(c, key, dpo, is_static),
        Action::Request { key, to } => send_request(c, key, to),
        Action::Fail { waiters, hold } => fail(c, &waiters, hold),
    }
}

/// Completes a neighbour's adjacency, which it holds while resolved, and notifies subscribers.
fn publish(c: &mut Control, key: Key) -> Result<Option<Dpo>, FibError> {
    let (sw_if, ip) = key;
    let connected = resolver(c, ip).is_ok_and(|r| r.is_connected(c, sw_if, ip));
    let state = c.state::<Neighbors>();
    let forwarding = c.state::<Forwarding>();
    let change = {
        let mut s = state.borrow_mut();
        let Some(e) = s.table.get_mut(key) else { return Ok(None) };
        let mut f = forwarding.borrow_mut();
        if e.dpo.is_none() {
            e.dpo = Some(f.adjacency(c, sw_if, Version::of_ip(ip).link(), Peer::Neighbor(ip))?);
        }
        f.set_neighbor(c, sw_if, ip, e.mac);
        e.in_fib = connected && !e.no_fib;
        NeighborChange { sw_if, ip, mac: e.mac, is_static: e.is_static, fib_entry: e.in_fib }
    };
    c.publish(change);
    let dpo = state.borrow().table.get(key).and_then(|e| e.dpo);
    Ok(dpo)
}

fn withdraw(c: &mut Control, (sw_if, ip): Key, dpo: Option<Dpo>, is_static: bool) {
    let forwarding = c.state::<Forwarding>();
    forwarding.borrow_mut().set_neighbor(c, sw_if, ip, None);
    c.publish(NeighborChange { sw_if, ip, mac: None, is_static, fib_entry: false });
    if let Some(dpo) = dpo {
        forwarding.borrow_mut().release(c, dpo);
    }
}

fn send_reply(c: &mut Control, worker: usize, node: NodeId, reply: ResolveReply) {
    if worker < c.workers() {
        c.message(worker, node, Box::new(reply));
    }
}

fn park(c: &Control, dpo: Dpo) -> Parked {
    c.state::<Forwarding>().borrow().table().park(dpo)
}

/// Returns the neighbour or interface of an adjacency, if it was not freed.
pub(super) fn owner(c: &Control, parked: Parked) -> Option<(SwIfIndex, Option<IpAddr>)> {
    let forwarding = c.state::<Forwarding>();
    let forwarding = forwarding.borrow();
    forwarding.owner(forwarding.table().unpark(parked))
}

fn release(c: &mut Control, key: Key, dpo: Dpo, waiters: &[Waiter], revived: bool) {
    for w in waiters {
        let request = w.request;
        // One of the neighbour's adjacencies, by link type. The index may by now be another one's:
        // these packets must not follow.
        let is_own = |own| owner(c, own) == Some((key.0, Some(key.1)));
        let reply = match request.dpo {
            None => ResolveReply::Release { request, dpo: park(c, dpo) },
            Some(own) if is_own(own) => ResolveReply::Release { request, dpo: own },
            Some(_) => ResolveReply::Fail { request, until: AT_ONCE },
        };
        send_reply(c, usize::from(w.worker), w.node, reply);
    }
    if revived {
        revive(c, key, dpo);
    }
}

/// Ends the silence of a neighbour on all workers.
fn revive(c: &mut Control, (sw_if, ip): Key, dpo: Dpo) {
    let holders = c.state::<Neighbors>().borrow().holders.clone();
    for (link, nodes) in holders {
        let glean = nodes.glean.filter(|_| link == Version::of_ip(ip).link());
        let host = glean.map(|node| (node, None, dpo));
        let own = c.state::<Forwarding>().borrow().find(sw_if, link, ip).map(|a| a.dpo);
        let own = own.map(|own| (nodes.incomplete, Some(park(c, own)), own));
        for (name, by, dpo) in [host, own].into_iter().flatten() {
            let Some(node) = c.node(name) else { continue };
            let (request, dpo) = (ResolveRequest { sw_if, ip, dpo: by }, park(c, dpo));
            for worker in 0..c.workers() {
                send_reply(c, worker, node, ResolveReply::Release { request, dpo });
            }
        }
    }
}

/// Makes workers ask again for neighbours that have not answered, and are no longer remembered.
pub(super) fn end_silences(c: &mut Control, which: EndSilences) {
    for_holders(c, which);
}

/// Makes nodes drop held packets that came from an interface that is deleted.
pub(super) fn drop_held_of(c: &mut Control, gone: SwIfIndex) {
    for_holders(c, Gone(gone));
}

/// Sends a message to all nodes that hold packets.
fn for_holders<M: Copy + Send + 'static>(c: &mut Control, message: M) {
    let holders = c.state::<Neighbors>().borrow().holders.clone();
    for (_, nodes) in holders {
        for name in [Some(nodes.incomplete), nodes.glean].into_iter().flatten() {
            if let Some(node) = c.node(name) {
                c.message_all(node, |_| Box::new(message));
            }
        }
    }
}

/// Ends a silence at once. The present time would not: a worker compares with the start of its
/// loop, which may be earlier.
const AT_ONCE: u64 = 0;

pub(super) fn fail(c: &mut Control, waiters: &[Waiter], hold: Duration) {
    let until = if hold.is_zero() { AT_ONCE } else { clock::ticks() + clock::ticks_in(hold) };
    for w in waiters {
        let reply = ResolveReply::Fail { request: w.request, until };
        send_reply(c, usize::from(w.worker), w.node, reply);
    }
}

fn send_request(c: &mut Control, (sw_if, ip): Key, to: Option<MacAddr>) {
    let (Ok(resolver), Ok(view)) = (resolver(c, ip), interface::view(c, sw_if)) else { return };
    if resolver.can_ask(c, sw_if, ip) {
        c.shared::<Awaited>().note(sw_if, ip, clock::ticks());
        resolver.ask(c, &view, ip, to);
    }
}

/// Sends an untagged frame by an interface, which adds its tags.
pub fn send(c: &mut Control, view: &InterfaceView, frame: &[u8]) {
    if c.workers() > 0 {
        let bytes = view.tags.insert(frame);
        // Requests are few: spreading them over workers gains nothing.
        c.inject(0, Inject { node: view.output, bytes, tx_if: view.sw_if, ..Inject::default() });
    }
}
