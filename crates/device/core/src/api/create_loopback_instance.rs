//! `create_loopback_instance`: creates a loopback with a given instance number.

use crate::api_types::mac;
use crate::message_types::{CreateLoopbackInstance, CreateLoopbackInstanceReply, INTERFACE};
use crate::{DeviceError, loopback};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, CreateLoopbackInstance, CreateLoopbackInstanceReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: CreateLoopbackInstance,
) -> Result<CreateLoopbackInstanceReply, Retval> {
    let instance = rq.is_specified.then_some(rq.user_instance);
    if instance.is_some_and(|n| n > loopback::MAX_INSTANCE) {
        return Err(Retval::INVALID_REGISTRATION.because("the instance is out of range"));
    }
    match loopback::create_loopback(c, instance, mac(rq.mac_address)) {
        Ok(sw_if) => Ok(CreateLoopbackInstanceReply { sw_if_index: InterfaceIndex(sw_if.get()) }),
        // VPP's error for an instance in use.
        Err(e @ DeviceError::Exists(_)) => Err(Retval::INVALID_REGISTRATION.because(e)),
        Err(e) => Err(e.into()),
    }
}
