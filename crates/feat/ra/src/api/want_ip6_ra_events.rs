//! `want_ip6_ra_events`: subscribes to events of other routers' advertisements.

use crate::api_types::Watchers;
use crate::message_types::{IP6_ND, Ip6RaEvent, WantIp6RaEvents, WantIp6RaEventsReply};
use thalweg_api::{Call, Caller, Clients, Message, Retval};
use thalweg_graph::Control;

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
