//! `nat44_interface_add_del_feature`: adds or deletes a role of an interface.

use crate::api_types::{NAT44_ED, NatConfigFlags, has};
use crate::state;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Nat44InterfaceAddDelFeature {
    /// Add or delete.
    pub is_add: bool,
    /// Flags.
    pub flags: NatConfigFlags,
    /// Interface.
    pub sw_if_index: InterfaceIndex,
}

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
