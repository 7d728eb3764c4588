//! `nat44_lb_static_mapping_dump`: lists load-balancing mappings.

use crate::Nat44;
use crate::api_types::mapping_flags;
use crate::message_types::{
    NAT44_ED, Nat44LbAddrPort, Nat44LbStaticMappingDetails, Nat44LbStaticMappingDump,
};
use thalweg_api::types::Ip4Address;
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, Nat44LbStaticMappingDump, Nat44LbStaticMappingDetails> =
    Dump::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    _: Nat44LbStaticMappingDump,
    out: &mut Details<Nat44LbStaticMappingDetails>,
) {
    let nat = c.state::<Nat44>();
    let nat = nat.borrow();
    for s in nat.mappings().filter(|s| !s.mapping.backends.is_empty()) {
        let m = &s.mapping;
        out.send(&Nat44LbStaticMappingDetails {
            external_addr: Ip4Address(m.external.octets()),
            external_port: m.external_port,
            protocol: m.protocol,
            flags: mapping_flags(m),
            affinity: m.affinity,
            tag: s.tag.as_str().into(),
            locals: m.backends.iter().map(Nat44LbAddrPort::of).collect(),
        });
    }
}
