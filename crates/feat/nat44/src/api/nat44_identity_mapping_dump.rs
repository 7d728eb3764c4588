//! `nat44_identity_mapping_dump`: hosts inside that keep their names.

use crate::Nat44;
use crate::api_types::{NAT44_ED, NatConfigFlags, mapping_flags};
use thalweg_api::types::{InterfaceIndex, Ip4Address};
use thalweg_api::{Details, Dump, Message, Text};
use thalweg_graph::Control;

/// Asks for them.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44IdentityMappingDump;

/// One of them.
#[derive(Debug, Message)]
#[api(details)]
pub struct Nat44IdentityMappingDetails {
    /// Qualities.
    pub flags: NatConfigFlags,
    /// The address.
    pub ip_address: Ip4Address,
    /// IP protocol.
    pub protocol: u8,
    /// Port.
    pub port: u16,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Routing table; all ones for none.
    pub vrf_id: u32,
    /// Not kept.
    pub tag: Text<64>,
}

/// The service.
pub static SERVICE: Dump<Control, Nat44IdentityMappingDump, Nat44IdentityMappingDetails> =
    Dump::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    _: Nat44IdentityMappingDump,
    out: &mut Details<Nat44IdentityMappingDetails>,
) {
    for s in c.state::<Nat44>().borrow().mappings().iter().filter(|s| s.identity) {
        let m = &s.mapping;
        out.send(&Nat44IdentityMappingDetails {
            flags: mapping_flags(m),
            ip_address: Ip4Address(m.external.octets()),
            protocol: m.protocol,
            port: m.external_port,
            sw_if_index: s.external_if.map_or(InterfaceIndex::NONE, InterfaceIndex),
            vrf_id: m.table,
            tag: Text::default(),
        });
    }
}
