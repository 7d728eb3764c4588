//! `mpls_tunnel_dump`: lists tunnels of labels.

use crate::api_types::describe_tunnel;
use crate::message_types::{MPLS, MplsTunnelDetails, MplsTunnelDump};
use crate::tunnels::Tunnels;
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, MplsTunnelDump, MplsTunnelDetails> = Dump::new(&MPLS, handle);

fn handle(c: &mut Control, rq: MplsTunnelDump, out: &mut Details<MplsTunnelDetails>) {
    let wanted = rq.sw_if_index.0;
    for tunnel in c.state::<Tunnels>().borrow().iter() {
        if wanted == u32::MAX || wanted == tunnel.sw_if.get() {
            out.send(&MplsTunnelDetails { mt_tunnel: describe_tunnel(c, tunnel) });
        }
    }
}
