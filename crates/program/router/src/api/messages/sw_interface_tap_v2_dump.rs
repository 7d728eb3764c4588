//! `sw_interface_tap_v2_dump`: taps, of which there are none yet; clients such as `vppcfg` insist
//! on the message.

use thalweg_api::schema::Module;
use thalweg_api::types::{InterfaceIndex, Ip4Address, Ip6Address, MacAddr};
use thalweg_api::{ApiType, Details, Dump, Message, Text, api_alias, api_enum};
use thalweg_graph::Control;

static TAPV2: Module = Module { name: "tapv2", folder: "plugins", version: "4.0.0" };

/// An IPv4 network.
#[derive(Clone, Copy, Debug, Default, PartialEq, ApiType)]
pub struct Ip4Prefix {
    /// Its address.
    pub address: Ip4Address,
    /// Bits of the address that are the network's.
    pub len: u8,
}

/// An IPv6 network.
#[derive(Clone, Copy, Debug, Default, PartialEq, ApiType)]
pub struct Ip6Prefix {
    /// Its address.
    pub address: Ip6Address,
    /// Bits of the address that are the network's.
    pub len: u8,
}

api_alias! {
    /// An IPv4 address with the length of its network's prefix.
    pub struct Ip4AddressWithPrefix(Ip4Prefix) = "ip4_address_with_prefix";
    /// An IPv6 address with the length of its network's prefix.
    pub struct Ip6AddressWithPrefix(Ip6Prefix) = "ip6_address_with_prefix";
}

api_enum! {
    /// How a tap works.
    pub struct TapFlags: u32 = "tap_flags" {
        /// It segments.
        GSO = 1, "TAP_API_FLAG_GSO";
        /// It sums.
        CSUM_OFFLOAD = 2, "TAP_API_FLAG_CSUM_OFFLOAD";
        /// It stays when the router ends.
        PERSIST = 4, "TAP_API_FLAG_PERSIST";
        /// It was there before.
        ATTACH = 8, "TAP_API_FLAG_ATTACH";
        /// It carries IP packets.
        TUN = 16, "TAP_API_FLAG_TUN";
        /// It joins segments.
        GRO_COALESCE = 32, "TAP_API_FLAG_GRO_COALESCE";
        /// Its rings are packed.
        PACKED = 64, later "TAP_API_FLAG_PACKED";
        /// Its rings are used in order.
        IN_ORDER = 128, later "TAP_API_FLAG_IN_ORDER";
        /// Flows keep their queues.
        CONSISTENT_QP = 256, later "TAP_API_FLAG_CONSISTENT_QP";
    }
}

/// Asks for taps.
#[derive(Debug, Message)]
#[api(request)]
pub struct SwInterfaceTapV2Dump {
    /// Which one; none means all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

/// A tap.
#[derive(Debug, Message)]
#[api(details)]
pub struct SwInterfaceTapV2Details {
    /// The interface.
    pub sw_if_index: u32,
    /// The number in its name.
    pub id: u32,
    /// Slots to send.
    pub tx_ring_sz: u16,
    /// Slots to receive.
    pub rx_ring_sz: u16,
    /// The host's MTU.
    pub host_mtu_size: u32,
    /// The host's MAC address.
    pub host_mac_addr: MacAddr,
    /// The host's IPv4 address.
    pub host_ip4_prefix: Ip4AddressWithPrefix,
    /// The host's IPv6 address.
    pub host_ip6_prefix: Ip6AddressWithPrefix,
    /// How it works.
    pub tap_flags: TapFlags,
    /// Its name here.
    pub dev_name: Text<64>,
    /// Its name on the host.
    pub host_if_name: Text<64>,
    /// Its network namespace.
    pub host_namespace: Text<64>,
    /// The host's bridge.
    pub host_bridge: Text<64>,
}

/// The service.
pub static SERVICE: Dump<Control, SwInterfaceTapV2Dump, SwInterfaceTapV2Details> =
    Dump::new(&TAPV2, handle);

fn handle(_: &mut Control, _: SwInterfaceTapV2Dump, _: &mut Details<SwInterfaceTapV2Details>) {}
