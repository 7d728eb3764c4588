//! `bridge_domain_dump`: lists bridge domains.

use crate::api_module::L2;
use crate::bridges::Domain;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{ApiType, Details, Dump, Message, Text, Walk, walk_each};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Requests bridge domains.
#[derive(Debug, Message)]
#[api(request)]
pub struct BridgeDomainDump {
    /// Bridge domain id; all ones for every bridge domain.
    #[api(default = 0xffff_ffff)]
    pub bd_id: u32,
    /// Only the bridge domain of this interface; all ones for any.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

/// A port of a bridge domain.
#[derive(Debug, ApiType)]
pub struct BridgeDomainSwIf {
    /// Unused.
    pub context: u32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Split horizon group; ports of the same nonzero group do not exchange frames.
    pub shg: u8,
}

/// A bridge domain.
#[derive(Debug, Message)]
#[api(details)]
pub struct BridgeDomainDetails {
    /// Bridge domain id.
    pub bd_id: u32,
    /// Floods broadcast and multicast frames.
    pub flood: bool,
    /// Floods unknown unicast frames.
    pub uu_flood: bool,
    /// Forwards known unicast frames.
    pub forward: bool,
    /// Learns source MAC addresses.
    pub learn: bool,
    /// ARP termination.
    pub arp_term: bool,
    /// ARP unicast forwarding.
    pub arp_ufwd: bool,
    /// MAC aging time in minutes; 0 disables aging.
    pub mac_age: u8,
    /// User tag.
    pub bd_tag: Text<64>,
    /// The BVI; all ones if there is none.
    pub bvi_sw_if_index: InterfaceIndex,
    /// The port for unknown unicast frames, which is not one of the others; all ones if there is
    /// none.
    pub uu_fwd_sw_if_index: InterfaceIndex,
    /// The ports.
    #[api(count = "n_sw_ifs: u32")]
    pub sw_if_details: Vec<BridgeDomainSwIf>,
}

/// The service.
pub static SERVICE: Dump<Control, BridgeDomainDump, BridgeDomainDetails> =
    Dump::slices(&L2, handle);

fn handle(
    c: &mut Control,
    rq: BridgeDomainDump,
    out: Details<BridgeDomainDetails>,
) -> Walk<Control> {
    let state = c.state::<crate::L2>();
    let l2 = state.borrow();
    let of = (rq.sw_if_index != InterfaceIndex::NONE)
        .then(|| l2.bridges().of(SwIfIndex(rq.sw_if_index.0)));
    let wanted =
        |id: &u32| (rq.bd_id == u32::MAX || rq.bd_id == *id) && of.is_none_or(|of| of == Some(*id));
    let ids = l2.bridges().list().map(|(id, _)| id).filter(wanted).collect();
    walk_each(ids, out, |c: &mut Control, id, out| {
        let state = c.state::<crate::L2>();
        if let Some(domain) = state.borrow().bridges().get(id) {
            out.send(&details(id, domain));
        }
    })
}

fn details(id: u32, d: &Domain) -> BridgeDomainDetails {
    let port = |(sw_if, shg): (SwIfIndex, u8)| BridgeDomainSwIf {
        context: 0,
        sw_if_index: InterfaceIndex(sw_if.get()),
        shg,
    };
    let index = |port: Option<SwIfIndex>| {
        port.map_or(InterfaceIndex::NONE, |sw_if| InterfaceIndex(sw_if.get()))
    };
    BridgeDomainDetails {
        bd_id: id,
        flood: d.flood,
        uu_flood: d.flood_unknown,
        forward: d.forward,
        learn: d.learn,
        arp_term: d.arp_term,
        arp_ufwd: d.arp_ufwd,
        mac_age: d.mac_age,
        bd_tag: Text::from(d.tag.as_str()),
        bvi_sw_if_index: index(d.bvi()),
        uu_fwd_sw_if_index: index(d.unknown_forward()),
        sw_if_details: d.ports().map(port).collect(),
    }
}
