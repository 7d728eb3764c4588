//! `sw_interface_tap_v2_dump`: lists TAP and TUN interfaces.

use crate::api_types::{Ip4AddressWithPrefix, Ip6AddressWithPrefix, TAPV2, TapFlags};
use crate::config::DEFAULT_RING;
use crate::device::{Tap, Taps};
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Details, Dump, Message, Text};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Requests TAPs.
#[derive(Debug, Message)]
#[api(request)]
pub struct SwInterfaceTapV2Dump {
    /// One interface, or the maximum for all.
    #[api(default = 4294967295)]
    pub sw_if_index: InterfaceIndex,
}

/// A TAP.
#[derive(Debug, Message)]
#[api(details)]
pub struct SwInterfaceTapV2Details {
    /// The interface.
    pub sw_if_index: u32,
    /// Number in its name.
    pub id: u32,
    /// Transmit ring, without effect.
    pub tx_ring_sz: u16,
    /// Receive ring.
    pub rx_ring_sz: u16,
    /// MTU of the kernel's end that was asked for; 0 if none was.
    pub host_mtu_size: u32,
    /// MAC address of the kernel's end.
    pub host_mac_addr: MacAddr,
    /// IPv4 address of the kernel's end.
    pub host_ip4_prefix: Ip4AddressWithPrefix,
    /// IPv6 address of the kernel's end.
    pub host_ip6_prefix: Ip6AddressWithPrefix,
    /// Flags as they were asked for.
    pub tap_flags: TapFlags,
    /// Name of the interface.
    pub dev_name: Text<64>,
    /// Name of the kernel's end.
    pub host_if_name: Text<64>,
    /// Network namespace of the kernel's end.
    pub host_namespace: Text<64>,
    /// Bridge that it is a port of.
    pub host_bridge: Text<64>,
}

/// The service.
pub static SERVICE: Dump<Control, SwInterfaceTapV2Dump, SwInterfaceTapV2Details> =
    Dump::new(&TAPV2, handle);

fn details(sw_if: SwIfIndex, tap: &Tap) -> SwInterfaceTapV2Details {
    let (config, info) = (&tap.config, tap.info.borrow());
    let host = &config.host;
    let text = |t: &Option<String>| t.as_deref().unwrap_or_default().into();
    SwInterfaceTapV2Details {
        sw_if_index: sw_if.get(),
        id: tap.id,
        tx_ring_sz: config.tx_ring.unwrap_or(DEFAULT_RING),
        rx_ring_sz: config.rx_ring.unwrap_or(DEFAULT_RING),
        host_mtu_size: host.mtu.unwrap_or_default(),
        host_mac_addr: info.mac,
        host_ip4_prefix: host.ip4.map(Into::into).unwrap_or_default(),
        host_ip6_prefix: host.ip6.map(Into::into).unwrap_or_default(),
        tap_flags: TapFlags(config.flags.0),
        dev_name: tap.name.as_str().into(),
        host_if_name: info.name.as_str().into(),
        host_namespace: text(&host.namespace),
        host_bridge: text(&host.bridge),
    }
}

fn handle(c: &mut Control, rq: SwInterfaceTapV2Dump, out: &mut Details<SwInterfaceTapV2Details>) {
    for (sw_if, tap) in Taps::all(c) {
        if rq.sw_if_index == InterfaceIndex::NONE || rq.sw_if_index.0 == sw_if.get() {
            out.send(&details(sw_if, &tap));
        }
    }
}
