//! `nat44_ed_add_del_output_interface`: enables translation on output of an interface.

use crate::api_types::NAT44_ED;
use crate::state;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Nat44EdAddDelOutputInterface {
    /// Add or delete.
    pub is_add: bool,
    /// Interface.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, Nat44EdAddDelOutputInterface, Nat44EdAddDelOutputInterfaceReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44EdAddDelOutputInterface,
) -> Result<Nat44EdAddDelOutputInterfaceReply, Retval> {
    state::set_interface(c, SwIfIndex(rq.sw_if_index.0), false, true, rq.is_add)?;
    Ok(Nat44EdAddDelOutputInterfaceReply)
}
