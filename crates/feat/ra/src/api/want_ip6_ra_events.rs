//! `want_ip6_ra_events`: subscribes to events of other routers' advertisements.

use crate::api_types::{IP6_ND, Ip6RaEvent, Watchers};
use thalweg_api::{Call, Caller, Clients, Message, Retval};
use thalweg_graph::Control;

/// Subscribes to events of advertisements, or unsubscribes.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct WantIp6RaEvents {
    /// True to subscribe, false to unsubscribe.
    pub enable: bool,
    /// Client's process id, repeated in events.
    pub pid: u32,
}

/// The service.
pub static SERVICE: Call<Control, WantIp6RaEvents, WantIp6RaEventsReply> =
    Call::known(&IP6_ND, handle).with_events(&[Ip6RaEvent::DEF]);

fn handle(
    c: &mut Control,
    caller: &Caller,
    rq: WantIp6RaEvents,
) -> Result<WantIp6RaEventsReply, Retval> {
    let clients = c.state::<Clients>().borrow().clone();
    let watchers = c.state::<Watchers>();
    watchers.borrow_mut().0.want(&clients, caller, rq.enable, rq.pid, ())?;
    Ok(WantIp6RaEventsReply)
}
