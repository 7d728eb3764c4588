//! `nat44_interface_add_del_feature`: adds or deletes a role of an interface.

use crate::api_types::has;
use crate::message_types::{
    NAT44_ED, Nat44InterfaceAddDelFeature, Nat44InterfaceAddDelFeatureReply, NatConfigFlags,
};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Nat44InterfaceAddDelFeature, Nat44InterfaceAddDelFeatureReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44InterfaceAddDelFeature,
) -> Result<Nat44InterfaceAddDelFeatureReply, Retval> {
    let inside = has(rq.flags, NatConfigFlags::INSIDE);
    state::set_interface(c, SwIfIndex(rq.sw_if_index.0), inside, false, rq.is_add)?;
    Ok(Nat44InterfaceAddDelFeatureReply)
}
