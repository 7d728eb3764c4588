//! `bvi_create`: creates a loopback to be the router's own port of a bridge domain.

use crate::message_types::{BviCreate, BviCreateReply, L2};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Retval};
use thalweg_device::{DeviceError, loopback};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, BviCreate, BviCreateReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: BviCreate) -> Result<BviCreateReply, Retval> {
    let instance = Some(rq.user_instance).filter(|n| *n != u32::MAX);
    if instance.is_some_and(|n| n > loopback::MAX_INSTANCE) {
        return Err(Retval::INVALID_REGISTRATION.because("the instance is out of range"));
    }
    let mac = Some(rq.mac).filter(|mac| !mac.is_zero());
    match loopback::create_bvi(c, instance, mac) {
        Ok(sw_if) => Ok(BviCreateReply { sw_if_index: InterfaceIndex(sw_if.get()) }),
        // VPP's error for an instance in use.
        Err(e @ DeviceError::Exists(_)) => Err(Retval::INVALID_REGISTRATION.because(e)),
        Err(e) => Err(e.into()),
    }
}
