//! `ip_neighbor_dump`: the neighbours that are known.

use crate::Neighbors;
use crate::api_types::{IP_NEIGHBOR, IpNeighbor, describe};
use thalweg_api::types::{AddressFamily, InterfaceIndex};
use thalweg_api::{Details, Dump, Message, Walk};
use thalweg_graph::Control;

/// Asks for neighbours.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpNeighborDump {
    /// Of which interface; none means all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
    /// IPv4 or IPv6.
    pub af: AddressFamily,
}

/// A neighbour.
#[derive(Debug, Message)]
#[api(details)]
pub struct IpNeighborDetails {
    /// Seconds since it was last heard of.
    pub age: f64,
    /// The neighbour.
    pub neighbor: IpNeighbor,
}

/// The service.
pub static SERVICE: Dump<Control, IpNeighborDump, IpNeighborDetails> =
    Dump::slices(&IP_NEIGHBOR, handle);

fn handle(
    c: &mut Control,
    rq: IpNeighborDump,
    mut out: Details<IpNeighborDetails>,
) -> Walk<Control> {
    let mut all = match rq.af {
        AddressFamily::IP4 => c.state::<Neighbors>().borrow().list(),
        _ => Vec::new(),
    };
    all.retain(|n| [InterfaceIndex(n.sw_if), InterfaceIndex::NONE].contains(&rq.sw_if_index));
    let mut all = all.into_iter();
    Box::new(move |_| {
        while !out.is_full() {
            let Some(n) = all.next() else { return false };
            if let Some(neighbor) = describe(&n) {
                out.send(&IpNeighborDetails { age: n.age.as_secs_f64(), neighbor });
            }
        }
        true
    })
}
