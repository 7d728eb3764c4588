//! `create_vlan_subif`: creates a sub-interface for an 802.1Q VLAN.

use crate::api_types::view;
use crate::interface::{self, DeviceError, TagMatch, VlanTag};
use crate::message_types::{CreateVlanSubif, CreateVlanSubifReply, INTERFACE};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;
use thalweg_wire::vlan::MAX_ID;

/// The service.
pub static SERVICE: Call<Control, CreateVlanSubif, CreateVlanSubifReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: CreateVlanSubif) -> Result<CreateVlanSubifReply, Retval> {
    let parent = view(c, rq.sw_if_index)?.sw_if;
    let id = u16::try_from(rq.vlan_id).ok().filter(|id| (1..=MAX_ID.0).contains(id));
    let Some(id) = id else {
        let why = format!("a VLAN id from 1 to {MAX_ID} expected, not {}", rq.vlan_id);
        return Err(Retval::INVALID_VLAN.because(why));
    };
    let of = TagMatch::Outer { tag: VlanTag::dot1q(id), exact: true };
    match interface::create_sub(c, parent, rq.vlan_id, of) {
        Ok(sw_if) => Ok(CreateVlanSubifReply { sw_if_index: InterfaceIndex(sw_if.get()) }),
        Err(e @ DeviceError::Exists(_)) => Err(Retval::VLAN_ALREADY_EXISTS.because(e)),
        Err(e @ DeviceError::TagsInUse { .. }) => Err(Retval::INVALID_REGISTRATION.because(e)),
        Err(e) => Err(e.into()),
    }
}
