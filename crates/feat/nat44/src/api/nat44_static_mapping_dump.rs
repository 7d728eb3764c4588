//! `nat44_static_mapping_dump`: static mappings.

use crate::Nat44;
use crate::api_types::{NAT44_ED, NatConfigFlags, mapping_flags};
use thalweg_api::types::{InterfaceIndex, Ip4Address};
use thalweg_api::{Details, Dump, Message, Text};
use thalweg_graph::Control;

/// Asks for them.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44StaticMappingDump;

/// One of them.
#[derive(Debug, Message)]
#[api(details)]
pub struct Nat44StaticMappingDetails {
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
pub static SERVICE: Dump<Control, Nat44StaticMappingDump, Nat44StaticMappingDetails> =
    Dump::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    _: Nat44StaticMappingDump,
    out: &mut Details<Nat44StaticMappingDetails>,
) {
    let nat = c.state::<Nat44>();
    let nat = nat.borrow();
    for s in nat.mappings().iter().filter(|s| !s.identity && s.mapping.backends.is_empty()) {
        let m = &s.mapping;
        out.send(&Nat44StaticMappingDetails {
            flags: mapping_flags(m),
            local_ip_address: Ip4Address(m.local.octets()),
            external_ip_address: Ip4Address(m.external.octets()),
            protocol: m.protocol,
            local_port: m.local_port,
            external_port: m.external_port,
            external_sw_if_index: s.external_if.map_or(InterfaceIndex::NONE, InterfaceIndex),
            vrf_id: m.table,
            tag: Text::default(),
        });
    }
}
