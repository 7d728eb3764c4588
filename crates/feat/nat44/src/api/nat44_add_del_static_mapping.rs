//! `nat44_add_del_static_mapping`: adds a static mapping.

use crate::api_types::{NAT44_ED, NatConfigFlags, add_del, mapping};
use thalweg_api::types::{InterfaceIndex, Ip4Address};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Adds it, or takes it away.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct Nat44AddDelStaticMapping {
    /// Adds, or takes away.
    pub is_add: bool,
    /// Qualities.
    pub flags: NatConfigFlags,
    /// Address inside.
    pub local_ip_address: Ip4Address,
    /// Address outside.
    pub external_ip_address: Ip4Address,
    /// IP protocol.
    pub protocol: u8,
    /// Port inside.
    pub local_port: u16,
    /// Port outside.
    pub external_port: u16,
    /// Interface that has the address outside; all ones for none.
    pub external_sw_if_index: InterfaceIndex,
    /// Routing table; all ones for none.
    pub vrf_id: u32,
    /// Not kept.
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
        rq.protocol,
        rq.vrf_id,
    )?;
    add_del(c, m, rq.is_add)?;
    Ok(Nat44AddDelStaticMappingReply)
}
