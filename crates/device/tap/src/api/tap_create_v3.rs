//! `tap_create_v3`: creates a TAP or TUN interface.

use crate::api_types::{
    Ip4AddressWithPrefix, Ip6AddressWithPrefix, TAPV2, TapFlags, create, wanted,
};
use thalweg_api::types::{InterfaceIndex, Ip4Address, Ip6Address, MacAddr};
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Creates a TAP.
#[derive(Debug, Message)]
#[api(request)]
pub struct TapCreateV3 {
    /// Number in its name; the maximum for the lowest free one.
    #[api(default = 4294967295)]
    pub id: u32,
    /// Ignore `mac_address` and use the default MAC address.
    #[api(default = "true")]
    pub use_random_mac: bool,
    /// MAC address of the router's end.
    pub mac_address: MacAddr,
    /// Number of receive queues.
    #[api(default = 1)]
    pub num_rx_queues: u16,
    /// Number of transmit queues; each worker has one in any case.
    #[api(default = 1)]
    pub num_tx_queues: u16,
    /// Transmit ring, without effect; 0 for the default.
    #[api(default = 256)]
    pub tx_ring_sz: u16,
    /// Frames that wait for the router, a power of two; 0 for the default.
    #[api(default = 256)]
    pub rx_ring_sz: u16,
    /// `host_mtu_size` is set.
    pub host_mtu_set: bool,
    /// MTU of the kernel's end in bytes.
    pub host_mtu_size: u32,
    /// `host_mac_addr` is set.
    pub host_mac_addr_set: bool,
    /// MAC address of the kernel's end.
    pub host_mac_addr: MacAddr,
    /// `host_ip4_prefix` is set.
    pub host_ip4_prefix_set: bool,
    /// IPv4 address of the kernel's end.
    pub host_ip4_prefix: Ip4AddressWithPrefix,
    /// `host_ip6_prefix` is set.
    pub host_ip6_prefix_set: bool,
    /// IPv6 address of the kernel's end.
    pub host_ip6_prefix: Ip6AddressWithPrefix,
    /// `host_ip4_gw` is set.
    pub host_ip4_gw_set: bool,
    /// Gateway of an IPv4 default route.
    pub host_ip4_gw: Ip4Address,
    /// `host_ip6_gw` is set.
    pub host_ip6_gw_set: bool,
    /// Gateway of an IPv6 default route.
    pub host_ip6_gw: Ip6Address,
    /// Flags.
    pub tap_flags: TapFlags,
    /// `host_namespace` is set.
    pub host_namespace_set: bool,
    /// Network namespace of the kernel's end.
    pub host_namespace: Text<64>,
    /// `host_if_name` is set.
    pub host_if_name_set: bool,
    /// Name of the kernel's end.
    pub host_if_name: Text<64>,
    /// `host_bridge` is set.
    pub host_bridge_set: bool,
    /// Bridge to be a port of.
    pub host_bridge: Text<64>,
    /// Tag of the interface.
    pub tag: String,
}

/// Reply to [`TapCreateV3`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct TapCreateV3Reply {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, TapCreateV3, TapCreateV3Reply> = Call::new(&TAPV2, handle);

fn handle(c: &mut Control, rq: TapCreateV3) -> Result<TapCreateV3Reply, Retval> {
    let queues = (rq.num_rx_queues, rq.num_tx_queues);
    Ok(TapCreateV3Reply { sw_if_index: create(c, wanted!(rq, queues))? })
}
