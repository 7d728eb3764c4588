//! Events of learned MAC addresses, and flushes by API.

use crate::L2;
use crate::bridges::MacChange;
use crate::message_types::{L2ArpTermEvent, L2MacsEvent, MacEntry, MacEventAction};
use std::cell::RefCell;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::rc::Rc;
use std::time::Duration;
use thalweg_api::types::{Address, InterfaceIndex, MacAddr};
use thalweg_api::{Caller, Clients, Later, Message, Retval, Subscribers};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;
use thalweg_graph::control::TimerId;

/// Unit of the scan delay.
const HUNDREDTH: Duration = Duration::from_millis(10);
/// Changes sent per round.
const MAX_BATCH: usize = 1 << 14;
/// Unit of `max_macs_in_event`.
const MACS_PER_UNIT: usize = 10;

/// A client's request for events.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Wish {
    /// Maximum number of addresses per event, in tens.
    max: u8,
    /// Maximum number of learned addresses of all bridge domains.
    limit: Option<u32>,
}

/// Subscribed clients.
#[derive(Default)]
pub(crate) struct Watchers {
    all: Subscribers<Wish>,
    /// Time when they are sent what has changed; `None` without subscribed clients.
    timer: Option<TimerId>,
    /// Interval between events.
    pub(crate) delay: Delay,
}

/// Interval between events, in hundredths of a second.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delay(pub(crate) NonZeroU16);

impl Delay {
    /// The default interval.
    pub(crate) const DEFAULT: Delay = Delay(NonZeroU16::new(10).unwrap());

    fn time(self) -> Duration {
        HUNDREDTH * self.0.get().into()
    }
}

impl Default for Delay {
    fn default() -> Delay {
        Delay::DEFAULT
    }
}

impl Watchers {
    /// Process ids of the clients, each with the maximum number of addresses in an event.
    pub(crate) fn clients(&self) -> impl Iterator<Item = (u32, usize)> {
        self.all.iter().map(|(pid, wish)| (pid, usize::from(wish.max) * MACS_PER_UNIT))
    }

    /// The least that a client limits learned addresses to.
    fn limit(&self) -> Option<u32> {
        self.all.iter().filter_map(|(_, wish)| wish.limit).min()
    }

    /// The interval between events, in seconds.
    pub(crate) fn interval(&self) -> f64 {
        self.delay.time().as_secs_f64()
    }
}

/// Maximum numbers of learned addresses that a client may set for all bridge domains, as in VPP.
const LEARN_LIMIT: std::ops::Range<u32> = 1..1 << 24;

/// Subscribes a client, or unsubscribes it. While it is subscribed, `limit` is the maximum number
/// of learned addresses of all bridge domains.
pub(crate) fn want(
    c: &mut Control,
    caller: &Caller,
    on: bool,
    pid: u32,
    max: u8,
    limit: Option<u32>,
) -> Result<(), Retval> {
    if on && max == 0 {
        return Err(Retval::INVALID_VALUE.because("max_macs_in_event must be at least 1"));
    }
    if on && limit.is_some_and(|limit| !LEARN_LIMIT.contains(&limit)) {
        return Err(Retval::INVALID_VALUE.because("learn_limit must be 1 to 16777215"));
    }
    let clients = c.state::<Clients>().borrow().clone();
    let watchers = c.state::<Watchers>();
    let mut watchers = watchers.borrow_mut();
    watchers.all.remove(caller.id());
    let l2 = c.state::<L2>();
    if on {
        watchers.all.want(&clients, caller, true, pid, Wish { max, limit })?;
        l2.borrow_mut().bridges.watch(true);
    }
    l2.borrow_mut().bridges.set_watch_limit(watchers.limit());
    if on && watchers.timer.is_none() {
        watchers.timer = Some(c.after(watchers.delay.time(), notify));
    }
    Ok(())
}

/// Sets the interval between events, which holds from now on if it is shorter than before.
pub(crate) fn set_delay(c: &mut Control, delay: Delay) {
    let watchers = c.state::<Watchers>();
    let mut watchers = watchers.borrow_mut();
    let before = std::mem::replace(&mut watchers.delay, delay);
    if delay.0 < before.0
        && let Some(timer) = watchers.timer.take()
    {
        c.cancel(timer);
        watchers.timer = Some(c.after(delay.time(), notify));
    }
}

/// Sends pending changes, and rearms itself while clients are subscribed.
fn notify(c: &mut Control) {
    let clients = c.state::<Clients>().borrow().clone();
    let (watchers, l2) = (c.state::<Watchers>(), c.state::<L2>());
    let (mut watchers, mut l2) = (watchers.borrow_mut(), l2.borrow_mut());
    let changes: Vec<MacEntry> =
        l2.bridges.take_changes(MAX_BATCH).into_iter().map(entry).collect();
    for round in 0..changes.len().div_ceil(MACS_PER_UNIT) {
        watchers.all.notify(&clients, |pid, wish| {
            let mac = changes.chunks(usize::from(wish.max) * MACS_PER_UNIT).nth(round)?.to_vec();
            Some(L2MacsEvent { pid, mac })
        });
    }
    watchers.all.retain(&clients);
    l2.bridges.set_watch_limit(watchers.limit());
    watchers.timer = match watchers.all.is_empty() {
        false => Some(c.after(watchers.delay.time(), notify)),
        true => None,
    };
    if watchers.timer.is_none() {
        l2.bridges.watch(false);
    }
}

fn entry((mac, port, change): (thalweg_device::MacAddr, SwIfIndex, MacChange)) -> MacEntry {
    let action = match change {
        MacChange::Learned => MacEventAction::ADD,
        MacChange::Forgotten => MacEventAction::DELETE,
        MacChange::Moved => MacEventAction::MOVE,
    };
    let (sw_if_index, mac_addr) = (InterfaceIndex(port.0), mac);
    MacEntry { sw_if_index, mac_addr, action, flags: 0 }
}

/// Flushes MAC addresses and replies when done.
pub(crate) fn flush<R: Message + Default>(c: &mut Control, what: crate::Flush, later: Later<R>) {
    let later = Rc::new(RefCell::new(Some(later)));
    let answer = |later: &RefCell<Option<Later<R>>>, retval: i32| {
        if let Some(later) = later.take() {
            later.answer(retval, &R::default());
        }
    };
    let known = later.clone();
    if let Err(e) = crate::flush(c, what, move |_| answer(&known, 0)) {
        answer(&later, Retval::from(e).0);
    }
}

/// Clients that want to know of hosts that ask.
#[derive(Default)]
pub(crate) struct ArpWatchers(Subscribers);

/// Subscribes a client to hosts that ask, or unsubscribes it.
pub(crate) fn want_arp(c: &Control, caller: &Caller, on: bool, pid: u32) -> Result<(), Retval> {
    let clients = c.state::<Clients>().borrow().clone();
    let watchers = c.state::<ArpWatchers>();
    watchers.borrow_mut().0.want(&clients, caller, on, pid, ())?;
    crate::arp_term::watch(c, !watchers.borrow().0.is_empty());
    Ok(())
}

/// Sends clients the address, MAC address and port of a host that asks; returns whether there are
/// any.
pub(crate) fn notify_arp(
    c: &Control,
    clients: &Clients,
    (ip, mac, port): (IpAddr, MacAddr, SwIfIndex),
) -> bool {
    let watchers = c.state::<ArpWatchers>();
    let all = &mut watchers.borrow_mut().0;
    let (ip, sw_if_index) = (Address::from(ip), InterfaceIndex(port.0));
    all.notify(clients, |pid, ()| Some(L2ArpTermEvent { pid, ip, sw_if_index, mac }));
    all.retain(clients);
    !all.is_empty()
}
