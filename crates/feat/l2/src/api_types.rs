//! What API messages about learned stations have in common.

use crate::L2;
use crate::bridges::MacChange;
use std::cell::RefCell;
use std::num::NonZeroU16;
use std::rc::Rc;
use std::time::Duration;
use thalweg_api::types::{InterfaceIndex, MacAddress};
use thalweg_api::{ApiType, Caller, Clients, Later, Message, Retval, Subscribers, api_enum};
use thalweg_graph::Control;

api_enum! {
    /// What became of a station.
    pub struct MacEventAction: u32 = "mac_event_action" {
        /// It was learned.
        ADD = 0, "MAC_EVENT_ACTION_API_ADD";
        /// It was forgotten.
        DELETE = 1, "MAC_EVENT_ACTION_API_DELETE";
        /// It is behind another port.
        MOVE = 2, "MAC_EVENT_ACTION_API_MOVE";
    }
}

/// A station that was learned, or the like.
#[derive(Clone, Debug, ApiType)]
pub struct MacEntry {
    /// The port that it is or was behind.
    pub sw_if_index: InterfaceIndex,
    /// Its address.
    pub mac_addr: MacAddress,
    /// What became of it.
    pub action: MacEventAction,
    /// Always 0.
    pub flags: u8,
}

/// Tells of stations that were learned, forgotten or moved.
#[derive(Debug, Message)]
#[api(event)]
pub struct L2MacsEvent {
    /// What the client said when it asked.
    pub pid: u32,
    /// They, the oldest news first.
    #[api(count = "n_macs: u32")]
    pub mac: Vec<MacEntry>,
}

/// The unit in which it is said how often clients are told.
const HUNDREDTH: Duration = Duration::from_millis(10);
/// Of how many stations clients are told in one go.
const MAX_BATCH: usize = 1 << 14;
/// Clients count stations of an event by so many.
const MACS_PER_UNIT: usize = 10;

/// Clients that want to hear of stations, each with how many of them an event may hold.
#[derive(Default)]
pub(crate) struct Watchers {
    all: Subscribers<u8>,
    telling: bool,
    /// What is between events.
    pub(crate) delay: Delay,
}

/// Hundredths of a second between events of stations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delay(pub(crate) NonZeroU16);

impl Delay {
    /// What holds unless somebody says otherwise.
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

/// Tells a client from now on, or no longer.
pub(crate) fn want(
    c: &mut Control,
    caller: &Caller,
    on: bool,
    pid: u32,
    max: u8,
) -> Result<(), Retval> {
    if on && max == 0 {
        return Err(Retval::INVALID_VALUE.because("an event holds some stations at least"));
    }
    let clients = c.state::<Clients>().borrow().clone();
    let watchers = c.state::<Watchers>();
    let mut watchers = watchers.borrow_mut();
    watchers.all.forget(caller.id());
    if on {
        watchers.all.want(&clients, caller, true, pid, max)?;
        c.state::<L2>().borrow_mut().bridges.watch(true);
        if !std::mem::replace(&mut watchers.telling, true) {
            c.after(watchers.delay.time(), notify);
        }
    }
    Ok(())
}

/// Tells what has changed, and goes on until nobody listens.
fn notify(c: &mut Control) {
    let clients = c.state::<Clients>().borrow().clone();
    let (watchers, l2) = (c.state::<Watchers>(), c.state::<L2>());
    let (mut watchers, mut l2) = (watchers.borrow_mut(), l2.borrow_mut());
    let changes: Vec<MacEntry> =
        l2.bridges.take_changes(MAX_BATCH).into_iter().map(entry).collect();
    for round in 0..changes.len().div_ceil(MACS_PER_UNIT) {
        watchers.all.tell(&clients, |pid, max| {
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

fn entry((mac, port, change): (thalweg_device::Mac, u32, MacChange)) -> MacEntry {
    let action = match change {
        MacChange::Learned => MacEventAction::ADD,
        MacChange::Forgotten => MacEventAction::DELETE,
        MacChange::Moved => MacEventAction::MOVE,
    };
    let (sw_if_index, mac_addr) = (InterfaceIndex(port), MacAddress(mac));
    MacEntry { sw_if_index, mac_addr, action, flags: 0 }
}

/// Forgets stations and answers when that is done.
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
