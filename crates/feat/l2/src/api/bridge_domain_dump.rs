//! `bridge_domain_dump`: lists bridge domains.

use crate::bridges::Domain;
use crate::message_types::{BridgeDomainDetails, BridgeDomainDump, BridgeDomainSwIf, L2};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Text, Walk, walk_each};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

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
