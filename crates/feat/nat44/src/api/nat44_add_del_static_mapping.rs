//! `nat44_add_del_static_mapping`: adds or deletes a static mapping.

use crate::api_types::{NAT44_ED, NatConfigFlags, add_del, mapping};
use thalweg_api::types::{InterfaceIndex, Ip4Address};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct Nat44AddDelStaticMapping {
    /// Add or delete.
    pub is_add: bool,
    /// Flags.
    pub flags: NatConfigFlags,
    /// Inside address.
    pub local_ip_address: Ip4Address,
    /// External address.
    pub external_ip_address: Ip4Address,
    /// IP protocol.
    pub protocol: u8,
    /// Inside port.
    pub local_port: u16,
    /// External port.
    pub external_port: u16,
    /// Interface whose address is the external one; all ones for none.
    pub external_sw_if_index: InterfaceIndex,
    /// Routing table; all ones for none.
    pub vrf_id: u32,
    /// The user's word for it.
    pub tag: Text<64>,
}

/// The service.
pub static SERVICE: Call<Control, Nat44AddDelStaticMapping, Nat44AddDelStaticMappingReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44AddDelStaticMapping,
) -> Result<Nat44AddDelStaticMappingReply, Retval> {
    let m = mapping(
        c,
        rq.flags,
        (rq.local_ip_address.0.into(), rq.local_port),
        (rq.external_ip_address.0.into(), rq.external_port),
        rq.external_sw_if_index,
        (rq.protocol, rq.vrf_id),
        &rq.tag,
    )?;
    add_del(c, m, rq.is_add)?;
    Ok(Nat44AddDelStaticMappingReply)
}
