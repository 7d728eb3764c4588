//! `ip_neighbor_dump`: lists the neighbours with a MAC address.

use crate::Neighbors;
use crate::api_types::{describe, family};
use crate::message_types::{IP_NEIGHBOR, IpNeighborDetails, IpNeighborDump};
use crate::walk::NeighborWalk;
use std::task::Poll;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Walk};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Neighbours sent between checks that the client keeps reading.
const AT_ONCE: usize = 64;

/// The service.
pub static SERVICE: Dump<Control, IpNeighborDump, IpNeighborDetails> =
    Dump::slices(&IP_NEIGHBOR, handle);

fn handle(
    _: &mut Control,
    rq: IpNeighborDump,
    mut out: Details<IpNeighborDetails>,
) -> Walk<Control> {
    let only = (rq.sw_if_index != InterfaceIndex::NONE).then_some(SwIfIndex(rq.sw_if_index.0));
    let Ok(family) = family(rq.af) else { return Box::new(|_| false) };
    let mut walk = NeighborWalk::new(only, Some(family));
    Box::new(move |c| {
        let all = c.state::<Neighbors>();
        let all = all.borrow();
        for _ in 0..AT_ONCE {
            match walk.next(&all) {
                Poll::Ready(None) => return false,
                Poll::Ready(Some(n)) => {
                    if let Some(neighbor) = describe(&n) {
                        out.send(&IpNeighborDetails { age: n.age.as_secs_f64(), neighbor });
                    }
                }
                Poll::Pending => {}
            }
        }
        true
    })
}
