//! Shared parts of drivers for Linux network devices.
//!
//! * [`IfInfo`] describes a device; [`LinkMonitor`] reports changes.
//! * [`follow`]: interfaces follow link, MTU and MAC address of their devices, wait for devices
//!   that went away, and are attached again when these are back.
//! * [`VnetHdr`]: the header that describes a packet's pending offload work; [`offload`] converts
//!   it from and to a packet's metadata.
//! * [`receipt`]: what becomes of frames that a driver has read.
//! * [`gro`]: joins TCP segments for the kernel.
//! * [`Namespace`]: a network namespace of which a device is.
//! * [`mirror`]: a thread that keeps links as they are wanted, and reports them as they are.
//! * [`Backoff`]: the time of the next attempt at what the system has refused.
//! * [`sys`]: system calls.

mod backoff;
pub mod follow;
pub mod gro;
mod info;
pub mod mirror;
mod monitor;
mod namespace;
pub mod offload;
pub mod receipt;
pub mod routes;
pub mod sys;
mod vnet;

pub use backoff::Backoff;
pub use info::{IfInfo, LinkError};
pub use monitor::{LinkEvent, LinkMonitor};
pub use namespace::{Namespace, NamespaceError, NamespaceId};
pub use vnet::{BadOffload, VnetHdr};

use thalweg_device::MacAddr;
use thalweg_device::link_header::Link;

/// Framing of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// An Ethernet header.
    #[default]
    Ethernet,
    /// The IP header itself: tunnels and the like.
    Ip,
}

impl From<Framing> for Link {
    fn from(framing: Framing) -> Link {
        match framing {
            Framing::Ethernet => Link::Ethernet,
            Framing::Ip => Link::Ip,
        }
    }
}

/// Default MAC address of an interface on a device: derived from the device's own, so that it is
/// the same after a restart, but different, so that the kernel's stack ignores our frames.
pub fn default_mac(device: MacAddr) -> MacAddr {
    let [_, _, c, d, e, f] = device.octets();
    let mac = MacAddr::new(0x02, 0xfe, c, d, e, f);
    if mac == device { MacAddr::new(0x02, 0xfd, c, d, e, f) } else { mac }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_stable_and_not_the_devices() {
        assert_eq!(default_mac(MacAddr([2, 0, 0, 0, 1, 1])), MacAddr([2, 0xfe, 0, 0, 1, 1]));
        assert_ne!(default_mac(MacAddr([2, 0xfe, 0, 0, 1, 1])), MacAddr([2, 0xfe, 0, 0, 1, 1]));
    }
}
