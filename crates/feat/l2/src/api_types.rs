//! Events of learned MAC addresses, and flushes by API.

use crate::L2;
use crate::bridges::MacChange;
use std::cell::RefCell;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::rc::Rc;
use std::time::Duration;
use thalweg_api::types::{Address, InterfaceIndex, MacAddr};
use thalweg_api::{ApiType, Caller, Clients, Later, Message, Retval, Subscribers, api_enum};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

api_enum! {
    /// Change of a MAC address.
    pub struct MacEventAction: u32 = "mac_event_action" {
        /// The address was learned.
        ADD = 0, "MAC_EVENT_ACTION_API_ADD";
        /// The address aged out or was flushed.
        DELETE = 1, "MAC_EVENT_ACTION_API_DELETE";
        /// The address moved to another port.
        MOVE = 2, "MAC_EVENT_ACTION_API_MOVE";
    }
}

/// A change of a learned MAC address.
#[derive(Clone, Debug, ApiType)]
pub struct MacEntry {
    /// Port of the address; of a deleted one, its last.
    pub sw_if_index: InterfaceIndex,
    /// MAC address.
    pub mac_addr: MacAddr,
    /// What happened.
    pub action: MacEventAction,
    /// Always 0.
    pub flags: u8,
}

/// MAC addresses that were learned, aged out or moved.
#[derive(Debug, Message)]
#[api(event)]
pub struct L2MacsEvent {
    /// Process id given in the subscription.
    pub pid: u32,
    /// Changes, oldest first.
    #[api(count = "n_macs: u32")]
    pub mac: Vec<MacEntry>,
}

/// Unit of the scan delay.
const HUNDREDTH: Duration = Duration::from_millis(10);
/// Changes sent per round.
const MAX_BATCH: usize = 1 << 14;
/// Unit of `max_macs_in_event`.
const MACS_PER_UNIT: usize = 10;

/// Subscribed clients, each with the maximum number of addresses per event.
#[derive(Default)]
pub(crate) struct Watchers {
    all: Subscribers<u8>,
    telling: bool,
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
        self.all.iter().map(|(pid, max)| (pid, usize::from(*max) * MACS_PER_UNIT))
    }

    /// The interval between events, in seconds.
    pub(crate) fn interval(&self) -> f64 {
        self.delay.time().as_secs_f64()
    }
}

/// What a client may limit all bridge domains to, as in VPP.
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
    if on && limit.is_some() || watchers.all.is_empty() {
        c.state::<L2>().borrow_mut().bridges.set_watch_limit(limit.filter(|_| on));
    }
    if on {
        watchers.all.want(&clients, caller, true, pid, max)?;
        c.state::<L2>().borrow_mut().bridges.watch(true);
        if !std::mem::replace(&mut watchers.telling, true) {
            c.after(watchers.delay.time(), notify);
        }
    }
    Ok(())
}

/// Sends pending changes, and rearms itself while clients are subscribed.
fn notify(c: &mut Control) {
    let clients = c.state::<Clients>().borrow().clone();
    let (watchers, l2) = (c.state::<Watchers>(), c.state::<L2>());
    let (mut watchers, mut l2) = (watchers.borrow_mut(), l2.borrow_mut());
    let changes: Vec<MacEntry> =
        l2.bridges.take_changes(MAX_BATCH).into_iter().map(entry).collect();
    for round in 0..changes.len().div_ceil(MACS_PER_UNIT) {
        watchers.all.notify(&clients, |pid, max| {
            let mac = changes.chunks(usize::from(*max) * MACS_PER_UNIT).nth(round)?.to_vec();
            Some(L2MacsEvent { pid, mac })
        });
    }
    watchers.all.retain(&clients);
    watchers.telling = !watchers.all.is_empty();
    if watchers.telling {
        c.after(watchers.delay.time(), notify);
    } else {
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

/// A host in a bridge domain with ARP termination has asked for another one.
#[derive(Debug, Message)]
#[api(event)]
pub struct L2ArpTermEvent {
    /// Process id given in the subscription.
    pub pid: u32,
    /// Address of the host.
    pub ip: Address,
    /// Port on which it asked.
    pub sw_if_index: InterfaceIndex,
    /// MAC address of the host.
    pub mac: MacAddr,
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
