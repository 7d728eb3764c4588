//! `create_loopback`: creates the next free loopback.

use crate::api_types::mac;
use crate::loopback;
use crate::message_types::{CreateLoopback, CreateLoopbackReply, INTERFACE};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, CreateLoopback, CreateLoopbackReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: CreateLoopback) -> Result<CreateLoopbackReply, Retval> {
    let sw_if = loopback::create_loopback(c, None, mac(rq.mac_address))?;
    Ok(CreateLoopbackReply { sw_if_index: InterfaceIndex(sw_if.get()) })
}
