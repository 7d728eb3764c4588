//! `nat44_ed_add_del_output_interface`: enables translation on output of an interface.

use crate::message_types::{
    NAT44_ED, Nat44EdAddDelOutputInterface, Nat44EdAddDelOutputInterfaceReply,
};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

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
