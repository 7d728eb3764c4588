//! `create_loopback_instance`: creates a loopback with a given instance number.

use crate::api_types::{INTERFACE, mac};
use crate::{DeviceError, loopback};
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Creates a loopback interface.
#[derive(Debug, Message)]
#[api(request)]
pub struct CreateLoopbackInstance {
    /// MAC address; zero for the default.
    pub mac_address: MacAddr,
    /// Use `user_instance`.
    pub is_specified: bool,
    /// Instance number.
    pub user_instance: u32,
}

/// Reply to [`CreateLoopbackInstance`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct CreateLoopbackInstanceReply {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

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
