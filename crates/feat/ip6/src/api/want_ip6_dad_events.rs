//! `want_ip6_dad_events`: subscribes to events of addresses that are tested.

use crate::api_types::Watchers;
use crate::message_types::{IP6_DAD, Ip6DadEvent, WantIp6DadEvents, WantIp6DadEventsReply};
use thalweg_api::{Call, Caller, Clients, Message, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, WantIp6DadEvents, WantIp6DadEventsReply> =
    Call::known(&IP6_DAD, handle).with_events(&[Ip6DadEvent::DEF]);

fn handle(
    c: &mut Control,
    caller: &Caller,
    rq: WantIp6DadEvents,
) -> Result<WantIp6DadEventsReply, Retval> {
    let clients = c.state::<Clients>().borrow().clone();
    let watchers = c.state::<Watchers>();
    // Asking again is no error, like in VPP.
    let _ = watchers.borrow_mut().0.want(&clients, caller, rq.enable_disable, rq.pid, ());
    Ok(WantIp6DadEventsReply)
}
