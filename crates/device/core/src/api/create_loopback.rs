//! `create_loopback`: creates the next free loopback.

use crate::api_types::{INTERFACE, mac};
use crate::loopback;
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Creates a loopback interface.
#[derive(Debug, Message)]
#[api(request)]
pub struct CreateLoopback {
    /// MAC address; zero for the default.
    pub mac_address: MacAddr,
}

/// Reply to [`CreateLoopback`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct CreateLoopbackReply {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, CreateLoopback, CreateLoopbackReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: CreateLoopback) -> Result<CreateLoopbackReply, Retval> {
    let sw_if = loopback::create_loopback(c, None, mac(rq.mac_address))?;
    Ok(CreateLoopbackReply { sw_if_index: InterfaceIndex(sw_if.get()) })
}
