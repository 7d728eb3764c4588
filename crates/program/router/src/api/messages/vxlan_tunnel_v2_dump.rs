//! `vxlan_tunnel_v2_dump`: VXLAN tunnels, of which there are none yet; `vppcfg` asks.

use crate::api::message_types::{VXLAN, VxlanTunnelV2Details, VxlanTunnelV2Dump};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, VxlanTunnelV2Dump, VxlanTunnelV2Details> =
    Dump::new(&VXLAN, handle);

fn handle(_: &mut Control, _: VxlanTunnelV2Dump, _: &mut Details<VxlanTunnelV2Details>) {}
