//! Groups that interfaces report, and times when they do.

use crate::packet;
use crate::port::Port;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::time::Instant;
use thalweg_device::{InterfaceEvent, InterfaceView, Interfaces, SwIfIndex, interface};
use thalweg_feat_ip6::{dad, link_local};
use thalweg_feat_nd::{self as nd, GroupsChanged, ListenersQueried};
use thalweg_feat_neighbor as neighbor;
use thalweg_graph::control::TimerId;
use thalweg_graph::{Control, clock};
use thalweg_tables::random::Random;

/// The group that all hosts are in without saying so.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Most interfaces that report at a time; the others follow at once.
const AT_A_TIME: usize = 64;

/// State on the main thread.
struct Mld {
    /// Interfaces that have listened to something.
    ports: BTreeMap<SwIfIndex, Port>,
    /// Interfaces by the time at which they have something to say.
    due: BTreeSet<(Instant, SwIfIndex)>,
    timer: Option<(Instant, TimerId)>,
    dice: Random,
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Mld {
        ports: BTreeMap::new(),
        due: BTreeSet::new(),
        timer: None,
        dice: Random::from_system(),
    });
    c.subscribe(|c, changed: &GroupsChanged| match changed {
        GroupsChanged::Of(sw_if) => follow(c, *sw_if),
        GroupsChanged::Groups(groups) => {
            let all: Vec<SwIfIndex> = c.state::<Mld>().borrow().ports.keys().copied().collect();
            all.into_iter().for_each(|sw_if| follow_groups(c, sw_if, groups));
        }
    });
    c.subscribe(|c, event: &InterfaceEvent| match *event {
        InterfaceEvent::State(i) => follow(c, i),
        InterfaceEvent::Deleted(i) => {
            change(c, i, |port, _, _| *port = Port::default());
            c.state::<Mld>().borrow_mut().ports.remove(&i);
        }
        _ => {}
    });
    c.subscribe(|c, event: &dad::Changed| {
        let is_used = event.state == dad::State::Preferred;
        if is_used && link_local::of(c, event.sw_if) == Some(event.ip) {
            change(c, event.sw_if, |port, now, _| port.report_again(now));
        }
    });
    c.subscribe(|c, queried: &ListenersQueried| {
        change(c, queried.sw_if, |port, now, dice| port.heard(&queried.query, now, dice));
    });
}

/// Returns what is known of an interface.
pub fn port(c: &Control, sw_if: SwIfIndex) -> Option<Port> {
    c.state::<Mld>().borrow().ports.get(&sw_if).cloned()
}

/// Returns the interfaces that listen to something, in order.
pub fn all(c: &Control) -> Vec<SwIfIndex> {
    let state = c.state::<Mld>();
    let state = state.borrow();
    let listening = state.ports.iter().filter(|(_, port)| port.groups().next().is_some());
    listening.map(|(i, _)| *i).collect()
}

/// Follows an interface's state and groups.
fn follow(c: &mut Control, sw_if: SwIfIndex) {
    let is_on = |view: &InterfaceView| view.is_up() && view.ethernet;
    let is_on = interface::view(c, sw_if).is_ok_and(|view| is_on(&view));
    let is_known = c.state::<Mld>().borrow().ports.contains_key(&sw_if);
    if !is_on {
        if is_known {
            // The link may be another one when it comes up.
            change(c, sw_if, |port, _, _| *port = port.forgotten());
        }
        return;
    }
    let wanted: BTreeSet<_> =
        nd::groups(c, sw_if).into_iter().filter(|g| *g != ALL_NODES).collect();
    if !is_known && !wanted.is_empty() {
        c.state::<Mld>().borrow_mut().ports.insert(sw_if, Port::default());
    }
    change(c, sw_if, |port, now, _| port.listen(&wanted, now));
}

/// Follows some groups on an interface: what else it listens to is not gone through.
fn follow_groups(c: &mut Control, sw_if: SwIfIndex, groups: &BTreeSet<Ipv6Addr>) {
    let is_on = {
        let all = c.state::<Interfaces>();
        let all = all.borrow();
        all.get(sw_if).is_some_and(|view| view.is_up() && view.ethernet)
    };
    for group in groups.iter().filter(|_| is_on) {
        let wanted = nd::has_joined(c, sw_if, *group);
        let is = c.state::<Mld>().borrow().ports.get(&sw_if).map(|port| port.hears(*group));
        if is.is_some_and(|is| is != wanted) {
            change(c, sw_if, |port, now, _| port.listen_to(*group, wanted, now));
        }
    }
}

/// Changes what is known of an interface, and when it is due.
fn change(c: &mut Control, sw_if: SwIfIndex, f: impl FnOnce(&mut Port, Instant, &mut Random)) {
    let now = clock::now();
    {
        let state = c.state::<Mld>();
        let Mld { ports, due, dice, .. } = &mut *state.borrow_mut();
        let Some(port) = ports.get_mut(&sw_if) else { return };
        let before = port.due();
        f(port, now, dice);
        let after = port.due();
        if before != after {
            before.into_iter().for_each(|at| _ = due.remove(&(at, sw_if)));
            after.into_iter().for_each(|at| _ = due.insert((at, sw_if)));
        }
    }
    arm(c);
}

/// Sets the timer to when the first interface is due.
fn arm(c: &mut Control) {
    let state = c.state::<Mld>();
    let (first, timer) = {
        let s = state.borrow();
        (s.due.first().map(|(at, _)| *at), s.timer)
    };
    if first == timer.map(|(at, _)| at) {
        return;
    }
    if let Some((_, timer)) = timer {
        c.cancel(timer);
    }
    let armed = first.map(|at| {
        let delay = at.saturating_duration_since(clock::now());
        (at, c.after(delay, tick))
    });
    state.borrow_mut().timer = armed;
}

/// Sends what is due.
fn tick(c: &mut Control) {
    let now = clock::now();
    let due: Vec<SwIfIndex> = {
        let state = c.state::<Mld>();
        let mut s = state.borrow_mut();
        s.timer = None;
        let due = s.due.iter().take_while(|(at, _)| *at <= now).take(AT_A_TIME);
        due.map(|(_, i)| *i).collect()
    };
    for sw_if in due {
        let mut messages = Vec::new();
        change(c, sw_if, |port, _, dice| messages = port.poll(now, dice));
        let Ok(view) = interface::view(c, sw_if) else { continue };
        // An interface that has no usable address yet reports without one (RFC 3590).
        let src = link_local::usable(c, sw_if).unwrap_or(Ipv6Addr::UNSPECIFIED);
        for message in &messages {
            neighbor::send(c, &view, &packet::frame(view.mac, src, message));
        }
    }
    arm(c);
}
