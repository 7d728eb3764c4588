//! Helpers shared by the host interface API messages.

use crate::device::{self, HostConfig};
use crate::message_types::AfPacketFlags;
use crate::ring::Options;
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Retval, Text};
use thalweg_device::{DeviceError, interface};
use thalweg_graph::Control;

/// Returns the given MAC address unless it is zero or a default is requested.
pub(crate) fn chosen(address: MacAddr, random: bool) -> Option<MacAddr> {
    (!random && !address.is_zero()).then_some(address)
}

/// Returns a size unless it is zero.
pub(crate) fn size(n: u32) -> Option<u32> {
    (n != 0).then_some(n)
}

/// Default configuration.
pub(crate) fn config(name: &Text<64>, mac: Option<MacAddr>, rx_queues: u16) -> HostConfig {
    let mut config = HostConfig { name: name.as_str().into(), mac, ..HostConfig::default() };
    config.options.rx_queues = rx_queues.max(1);
    config
}

/// Sets the options that flags select.
///
/// # Errors
/// [`Retval::INVALID_VALUE`] for unknown flags.
pub(crate) fn apply(flags: AfPacketFlags, options: &mut Options) -> Result<(), Retval> {
    use AfPacketFlags as F;
    if flags.is_beyond(&[F::QDISC_BYPASS, F::CKSUM_GSO, F::VERSION_2]) {
        return Err(Retval::INVALID_VALUE.because("unknown flags"));
    }
    options.qdisc_bypass = flags.has(F::QDISC_BYPASS);
    options.offload = flags.has(F::CKSUM_GSO);
    Ok(())
}

/// Creates a host interface.
pub(crate) fn create(c: &mut Control, config: HostConfig) -> Result<InterfaceIndex, Retval> {
    if interface::find(c, &format!("host-{}", config.name)).is_ok() {
        return Err(Retval::IF_ALREADY_EXISTS);
    }
    match device::create(c, config) {
        Ok(sw_if) => Ok(InterfaceIndex(sw_if.get())),
        Err(e @ DeviceError::Failed(_)) => Err(Retval::INVALID_INTERFACE.because(e)),
        Err(e) => Err(e.into()),
    }
}
