//! `mpls_tunnel_dump`: lists tunnels of labels.

use crate::api_types::{MPLS, MplsTunnel, describe_tunnel};
use crate::tunnels::Tunnels;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Requests tunnels.
#[derive(Debug, Message)]
#[api(request)]
pub struct MplsTunnelDump {
    /// That of one interface; all ones for all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

/// A tunnel.
#[derive(Debug, Message)]
#[api(details)]
pub struct MplsTunnelDetails {
    /// The tunnel.
    pub mt_tunnel: MplsTunnel,
}

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
