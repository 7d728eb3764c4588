//! `l2_interface_efp_filter`: lets an interface send only frames that it would receive.

use crate::message_types::{L2, L2InterfaceEfpFilter, L2InterfaceEfpFilterReply};
use thalweg_api::{Call, Retval};
use thalweg_device::{DeviceError, SwIfIndex};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, L2InterfaceEfpFilter, L2InterfaceEfpFilterReply> =
    Call::new(&L2, handle);

fn handle(c: &mut Control, rq: L2InterfaceEfpFilter) -> Result<L2InterfaceEfpFilterReply, Retval> {
    match crate::set_efp_filter(c, SwIfIndex(rq.sw_if_index.0), rq.enable_disable) {
        Err(e @ DeviceError::Unsupported { .. }) => Err(Retval::INVALID_INTERFACE.because(e)),
        other => other.map(|()| L2InterfaceEfpFilterReply).map_err(Into::into),
    }
}
