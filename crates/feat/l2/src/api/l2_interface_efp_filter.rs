//! `l2_interface_efp_filter`: has an interface send only frames that it would receive.

use crate::api_module::L2;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::{DeviceError, SwIfIndex};
use thalweg_graph::Control;

/// Switches the check of the tags of frames that an interface in layer 2 sends.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2InterfaceEfpFilter {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to check, false to end that.
    #[api(default = "true")]
    pub enable_disable: bool,
}

/// The service.
pub static SERVICE: Call<Control, L2InterfaceEfpFilter, L2InterfaceEfpFilterReply> =
    Call::new(&L2, handle);

fn handle(c: &mut Control, rq: L2InterfaceEfpFilter) -> Result<L2InterfaceEfpFilterReply, Retval> {
    match crate::set_efp_filter(c, SwIfIndex(rq.sw_if_index.0), rq.enable_disable) {
        Err(e @ DeviceError::Unsupported { .. }) => Err(Retval::INVALID_INTERFACE.because(e)),
        other => other.map(|()| L2InterfaceEfpFilterReply).map_err(Into::into),
    }
}
