//! `want_interface_events`: tells a client when interfaces come, go, rise and fall.

use crate::api_types::{INTERFACE, Listeners, SwInterfaceEvent};
use thalweg_api::{Call, Caller, Clients, Message, Retval};
use thalweg_graph::Control;

/// Asks to be told, or no longer.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct WantInterfaceEvents {
    /// Whether to be told.
    pub enable_disable: u32,
    /// The client's process; events repeat it.
    pub pid: u32,
}

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
