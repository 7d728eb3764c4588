//! `create_loopback_instance`: creates a loopback of a number.

use crate::api_types::{INTERFACE, mac};
use crate::{DeviceError, loopback};
use thalweg_api::types::{InterfaceIndex, MacAddress};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for a loopback interface.
#[derive(Debug, Message)]
#[api(request)]
pub struct CreateLoopbackInstance {
    /// Its MAC address; zero for the usual one.
    pub mac_address: MacAddress,
    /// It is to have this number.
    pub is_specified: bool,
    /// The number in its name.
    pub user_instance: u32,
}

/// Answers [`CreateLoopbackInstance`].
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
        return Err(Retval::INVALID_REGISTRATION.because("there is no such instance"));
    }
    match loopback::create_loopback(c, instance, mac(rq.mac_address)) {
        Ok(sw_if) => Ok(CreateLoopbackInstanceReply { sw_if_index: InterfaceIndex(sw_if) }),
        // VPP's number for an instance that is taken.
        Err(e @ DeviceError::Exists(_)) => Err(Retval::INVALID_REGISTRATION.because(e)),
        Err(e) => Err(e.into()),
    }
}
