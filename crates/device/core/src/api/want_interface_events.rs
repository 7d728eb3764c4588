//! `want_interface_events`: subscribes to events of interfaces created, deleted or changing state.

use crate::api_types::Listeners;
use crate::message_types::{
    INTERFACE, SwInterfaceEvent, WantInterfaceEvents, WantInterfaceEventsReply,
};
use thalweg_api::{Call, Caller, Clients, Message, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, WantInterfaceEvents, WantInterfaceEventsReply> =
    Call::known(&INTERFACE, handle).with_events(&[SwInterfaceEvent::DEF]);

fn handle(
    c: &mut Control,
    caller: &Caller,
    rq: WantInterfaceEvents,
) -> Result<WantInterfaceEventsReply, Retval> {
    let clients = c.state::<Clients>().borrow().clone();
    let listeners = c.state::<Listeners>();
    listeners.borrow_mut().0.want(&clients, caller, rq.enable_disable != 0, rq.pid, ())?;
    Ok(WantInterfaceEventsReply)
}
