//! `nat44_identity_mapping_dump`: lists identity mappings.

use crate::Nat44;
use crate::api_types::mapping_flags;
use crate::message_types::{NAT44_ED, Nat44IdentityMappingDetails, Nat44IdentityMappingDump};
use thalweg_api::types::{InterfaceIndex, Ip4Address};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, Nat44IdentityMappingDump, Nat44IdentityMappingDetails> =
    Dump::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    _: Nat44IdentityMappingDump,
    out: &mut Details<Nat44IdentityMappingDetails>,
) {
    for s in c.state::<Nat44>().borrow().mappings().filter(|s| s.identity) {
        let m = &s.mapping;
        out.send(&Nat44IdentityMappingDetails {
            flags: mapping_flags(m),
            ip_address: Ip4Address(m.external.octets()),
            protocol: m.protocol,
            port: m.external_port,
            sw_if_index: s.external_if.map_or(InterfaceIndex::NONE, |i| InterfaceIndex(i.0)),
            vrf_id: m.table.get(),
            tag: s.tag.as_str().into(),
        });
    }
}
