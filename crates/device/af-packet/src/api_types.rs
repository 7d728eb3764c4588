//! What API messages about host interfaces have in common.

use crate::device::{self, HostConfig};
use thalweg_api::schema::Module;
use thalweg_api::types::{InterfaceIndex, MacAddress};
use thalweg_api::{Retval, Text, api_enum};
use thalweg_device::{DeviceError, interface};
use thalweg_graph::Control;

/// The module that describes them.
pub static AF_PACKET: Module = Module { name: "af_packet", folder: "plugins", version: "2.0.0" };

api_enum! {
    /// What frames begin with.
    pub struct AfPacketMode: u32 = "af_packet_mode" {
        /// An Ethernet header.
        ETHERNET = 1, "AF_PACKET_API_MODE_ETHERNET";
        /// An IP header.
        IP = 2, "AF_PACKET_API_MODE_IP";
    }
    /// How a host interface works. Frames are received as they come (version 2) with or without
    /// the flag: the kernel's version 3 keeps them for up to 1 ms, and no message asks for that.
    pub struct AfPacketFlags: u32 = "af_packet_flags" {
        /// Past the device's queueing discipline.
        QDISC_BYPASS = 1, "AF_PACKET_API_FLAG_QDISC_BYPASS";
        /// Checksums and segmentation are left to who is best at them.
        CKSUM_GSO = 2, "AF_PACKET_API_FLAG_CKSUM_GSO";
        /// Version 2 of the kernel's rings.
        VERSION_2 = 8, later "AF_PACKET_API_FLAG_VERSION_2";
    }
}

/// A MAC address that was chosen, unless it is zero.
pub(crate) fn chosen(address: MacAddress, random: bool) -> Option<[u8; 6]> {
    (!random && address.0 != [0; 6]).then_some(address.0)
}

/// A size that was chosen, unless it is zero.
pub(crate) fn size(n: u32) -> Option<u32> {
    (n != 0).then_some(n)
}

/// What holds unless a message says otherwise.
pub(crate) fn config(name: &Text<64>, mac: Option<[u8; 6]>, rx_queues: u16) -> HostConfig {
    let mut config = HostConfig { name: name.as_str().into(), mac, ..HostConfig::default() };
    config.options.rx_queues = rx_queues.max(1);
    config
}

/// Attaches a device.
pub(crate) fn create(c: &mut Control, config: HostConfig) -> Result<InterfaceIndex, Retval> {
    if interface::find(c, &format!("host-{}", config.name)).is_ok() {
        return Err(Retval::IF_ALREADY_EXISTS);
    }
    match device::create(c, config) {
        Ok(sw_if) => Ok(InterfaceIndex(sw_if)),
        Err(e @ DeviceError::Failed(_)) => Err(Retval::INVALID_INTERFACE.because(e)),
        Err(e) => Err(e.into()),
    }
}
