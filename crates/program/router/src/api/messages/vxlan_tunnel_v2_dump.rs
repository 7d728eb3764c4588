//! `vxlan_tunnel_v2_dump`: VXLAN tunnels, of which there are none yet; `vppcfg` asks.

use thalweg_api::schema::Module;
use thalweg_api::types::{Address, InterfaceIndex};
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

static VXLAN: Module = Module { name: "vxlan", folder: "plugins", version: "2.1.0" };

/// Asks for VXLAN tunnels.
#[derive(Debug, Message)]
#[api(request)]
pub struct VxlanTunnelV2Dump {
    /// Which one; none means all.
    pub sw_if_index: InterfaceIndex,
}

/// A VXLAN tunnel.
#[derive(Debug, Message)]
#[api(details)]
pub struct VxlanTunnelV2Details {
    /// Its interface.
    pub sw_if_index: InterfaceIndex,
    /// The number in its name.
    pub instance: u32,
    /// This end.
    pub src_address: Address,
    /// The other end.
    pub dst_address: Address,
    /// The port at this end.
    pub src_port: u16,
    /// The port at the other end.
    pub dst_port: u16,
    /// Where multicast goes, if the other end is a group.
    pub mcast_sw_if_index: InterfaceIndex,
    /// The routing table of the outer packets.
    pub encap_vrf_id: u32,
    /// Where inner packets go.
    pub decap_next_index: u32,
    /// The network's number.
    pub vni: u32,
}

/// The service.
pub static SERVICE: Dump<Control, VxlanTunnelV2Dump, VxlanTunnelV2Details> =
    Dump::new(&VXLAN, handle);

fn handle(_: &mut Control, _: VxlanTunnelV2Dump, _: &mut Details<VxlanTunnelV2Details>) {}
