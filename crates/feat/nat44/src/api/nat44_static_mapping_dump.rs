//! `nat44_static_mapping_dump`: lists static mappings.

use crate::Nat44;
use crate::api_types::mapping_flags;
use crate::message_types::{NAT44_ED, Nat44StaticMappingDetails, Nat44StaticMappingDump};
use thalweg_api::types::{InterfaceIndex, Ip4Address};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

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
    for s in nat.mappings().filter(|s| !s.identity && s.mapping.backends.is_empty()) {
        let m = &s.mapping;
        out.send(&Nat44StaticMappingDetails {
            flags: mapping_flags(m),
            local_ip_address: Ip4Address(m.local.octets()),
            external_ip_address: Ip4Address(m.external.octets()),
            protocol: m.protocol,
            local_port: m.local_port,
            external_port: m.external_port,
            external_sw_if_index: s
                .external_if
                .map_or(InterfaceIndex::NONE, |i| InterfaceIndex(i.0)),
            vrf_id: m.table.get(),
            tag: s.tag.as_str().into(),
        });
    }
}
