//! `nat44_lb_static_mapping_dump`: lists load-balancing mappings.

use crate::Nat44;
use crate::api_types::{NAT44_ED, Nat44LbAddrPort, NatConfigFlags, mapping_flags};
use thalweg_api::types::Ip4Address;
use thalweg_api::{Details, Dump, Message, Text};
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44LbStaticMappingDump;

/// Entry of the dump.
#[derive(Debug, Message)]
#[api(details)]
pub struct Nat44LbStaticMappingDetails {
    /// External address.
    pub external_addr: Ip4Address,
    /// External port.
    pub external_port: u16,
    /// IP protocol.
    pub protocol: u8,
    /// Flags.
    pub flags: NatConfigFlags,
    /// Minimum time in seconds that a client stays with its back end.
    pub affinity: u32,
    /// The user's word for it.
    pub tag: Text<64>,
    /// Back ends.
    #[api(count = "local_num: u32")]
    pub locals: Vec<Nat44LbAddrPort>,
}

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
