//! `bvi_delete`: deletes what `bvi_create` has made.

use crate::message_types::{BviDelete, BviDeleteReply, L2};
use thalweg_api::{Call, Retval};
use thalweg_device::{DeviceError, SwIfIndex, loopback};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, BviDelete, BviDeleteReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: BviDelete) -> Result<BviDeleteReply, Retval> {
    match loopback::delete_bvi(c, SwIfIndex(rq.sw_if_index.0)) {
        Ok(()) => Ok(BviDeleteReply),
        // VPP's error for an interface of another kind.
        Err(e @ DeviceError::Unsupported { .. }) => Err(Retval::INVALID_SW_IF_INDEX.because(e)),
        Err(e) => Err(e.into()),
    }
}
