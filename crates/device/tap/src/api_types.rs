//! Helpers shared by the messages of TAPs.

use crate::config::{Flags, TapConfig};
use crate::message_types::{
    Ip4AddressWithPrefix, Ip4Prefix, Ip6AddressWithPrefix, Ip6Prefix, TapFlags,
};
use crate::{Error, device};
use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_api::types::{InterfaceIndex, Ip4Address, Ip6Address, MacAddr};
use thalweg_api::{Retval, Text};
use thalweg_device::interface;
use thalweg_graph::Control;

impl Ip4AddressWithPrefix {
    fn parts(self) -> Result<(Ipv4Addr, u8), Retval> {
        let Ip4Prefix { address, len } = self.0;
        if len > 32 {
            return Err(Retval::INVALID_PREFIX_LENGTH);
        }
        Ok((address.0.into(), len))
    }
}

impl Ip6AddressWithPrefix {
    fn parts(self) -> Result<(Ipv6Addr, u8), Retval> {
        let Ip6Prefix { address, len } = self.0;
        if len > 128 {
            return Err(Retval::INVALID_PREFIX_LENGTH);
        }
        Ok((address.0.into(), len))
    }
}

impl From<(Ipv4Addr, u8)> for Ip4AddressWithPrefix {
    fn from((ip, len): (Ipv4Addr, u8)) -> Self {
        Self(Ip4Prefix { address: Ip4Address(ip.octets()), len })
    }
}

impl From<(Ipv6Addr, u8)> for Ip6AddressWithPrefix {
    fn from((ip, len): (Ipv6Addr, u8)) -> Self {
        Self(Ip6Prefix { address: Ip6Address(ip.octets()), len })
    }
}

/// Returns the value if it is marked as set.
fn given<T>(is_set: bool, value: T) -> Option<T> {
    is_set.then_some(value)
}

/// The fields that requests of all versions have.
pub(crate) struct Wanted<'a> {
    pub(crate) id: u32,
    pub(crate) mac: Option<MacAddr>,
    /// Receive and transmit queues.
    pub(crate) queues: (u16, u16),
    /// Receive and transmit rings.
    pub(crate) rings: (u16, u16),
    pub(crate) mtu: Option<u32>,
    pub(crate) host_mac: Option<MacAddr>,
    pub(crate) ip4: Option<Ip4AddressWithPrefix>,
    pub(crate) ip6: Option<Ip6AddressWithPrefix>,
    pub(crate) ip4_gw: Option<Ip4Address>,
    pub(crate) ip6_gw: Option<Ip6Address>,
    pub(crate) flags: TapFlags,
    pub(crate) namespace: Option<&'a Text<64>>,
    pub(crate) name: Option<&'a Text<64>>,
    pub(crate) bridge: Option<&'a Text<64>>,
    pub(crate) tag: &'a str,
}

/// Takes what both versions of the request have.
macro_rules! wanted {
    ($rq:ident, $queues:expr) => {
        $crate::api_types::Wanted {
            id: $rq.id,
            mac: (!$rq.use_random_mac).then_some($rq.mac_address),
            queues: $queues,
            rings: ($rq.rx_ring_sz, $rq.tx_ring_sz),
            mtu: $rq.host_mtu_set.then_some($rq.host_mtu_size),
            host_mac: $rq.host_mac_addr_set.then_some($rq.host_mac_addr),
            ip4: $rq.host_ip4_prefix_set.then_some($rq.host_ip4_prefix),
            ip6: $rq.host_ip6_prefix_set.then_some($rq.host_ip6_prefix),
            ip4_gw: $rq.host_ip4_gw_set.then_some($rq.host_ip4_gw),
            ip6_gw: $rq.host_ip6_gw_set.then_some($rq.host_ip6_gw),
            flags: $rq.tap_flags,
            namespace: $rq.host_namespace_set.then_some(&$rq.host_namespace),
            name: $rq.host_if_name_set.then_some(&$rq.host_if_name),
            bridge: $rq.host_bridge_set.then_some(&$rq.host_bridge),
            tag: $rq.tag.as_str(),
        }
    };
}
pub(crate) use wanted;

/// Creates a TAP.
pub(crate) fn create(c: &mut Control, rq: Wanted<'_>) -> Result<InterfaceIndex, Retval> {
    let mut config = TapConfig::default();
    if rq.flags.0 & !ALL_FLAGS != 0 {
        return Err(Retval::INVALID_VALUE.because("unknown flags"));
    }
    config.id = given(rq.id != u32::MAX, rq.id);
    config.mac = rq.mac;
    (config.rx_queues, config.tx_queues) = (rq.queues.0.max(1), rq.queues.1.max(1));
    config.rx_ring = given(!matches!(rq.rings.0, 0 | crate::config::DEFAULT_RING), rq.rings.0);
    config.tx_ring = given(!matches!(rq.rings.1, 0 | crate::config::DEFAULT_RING), rq.rings.1);
    config.flags = Flags(rq.flags.0);
    let text = |t: Option<&Text<64>>| t.map(|t| t.as_str().to_owned());
    let host = &mut config.host;
    (host.mtu, host.mac) = (rq.mtu, rq.host_mac);
    host.ip4 = rq.ip4.map(Ip4AddressWithPrefix::parts).transpose()?;
    host.ip6 = rq.ip6.map(Ip6AddressWithPrefix::parts).transpose()?;
    host.ip4_gw = rq.ip4_gw.map(|ip| ip.0.into());
    host.ip6_gw = rq.ip6_gw.map(|ip| ip.0.into());
    (host.name, host.namespace, host.bridge) = (text(rq.name), text(rq.namespace), text(rq.bridge));
    let failed = |e: Error| Retval(e.code()).because(e);
    let sw_if = device::create(c, config).map_err(failed)?;
    if !rq.tag.is_empty()
        && let Err(e) = interface::set_tag(c, sw_if, rq.tag)
    {
        tracing::warn!("{}: {e}", c.interface_name(sw_if));
    }
    Ok(InterfaceIndex(sw_if.get()))
}

const ALL_FLAGS: u32 = 0x1ff;
