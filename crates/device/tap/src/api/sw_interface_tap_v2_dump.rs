//! `sw_interface_tap_v2_dump`: lists TAP and TUN interfaces.

use crate::config::DEFAULT_RING;
use crate::device::{Tap, Taps};
use crate::message_types::{SwInterfaceTapV2Details, SwInterfaceTapV2Dump, TAPV2, TapFlags};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

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
