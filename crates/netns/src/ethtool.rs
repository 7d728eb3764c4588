//! Switching an interface's offloads, over the kernel's ethtool netlink family.
//!
//! A virtual Ethernet pair hands packets across with their checksums not yet computed, in lumps
//! of up to 64 KiB, and with VLAN tags kept aside. A program that reads such an interface through
//! a packet socket sees what no wire would carry, unless the sender's offloads are off.

use anyhow::{Context, Result};
use thalweg_netlink::ethtool::set_features;

use crate::netns::Netns;

/// Offloads that an interface has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// Leave checksums to the receiver (`tx-checksum-*`).
    pub checksum: bool,
    /// Send GSO packets for others to cut up (`tx-*-segmentation`).
    pub segmentation: bool,
    /// Merge received segments (`rx-gro`).
    pub gro: bool,
    /// Keep VLAN tags in metadata, not in the packet.
    pub vlan: bool,
}

impl Offloads {
    /// All off: what is sent is what a wire would carry.
    pub const OFF: Offloads =
        Offloads { checksum: false, segmentation: false, gro: false, vlan: false };
    /// All on, as in new virtual Ethernet pairs of the kernel (except `gro`).
    pub const ON: Offloads = Offloads { checksum: true, segmentation: true, gro: true, vlan: true };

    /// The kernel's feature names with the wanted state of each.
    fn features(self) -> impl Iterator<Item = (&'static str, bool)> {
        let groups: [(&[&str], bool); 4] = [
            (&["tx-checksum-ip-generic", "tx-checksum-sctp"], self.checksum),
            (
                &[
                    "tx-generic-segmentation",
                    "tx-tcp-segmentation",
                    "tx-tcp6-segmentation",
                    "tx-tcp-ecn-segmentation",
                    "tx-udp-segmentation",
                ],
                // Segmentation needs checksums that someone else completes.
                self.segmentation && self.checksum,
            ),
            (&["rx-gro"], self.gro),
            (&["tx-vlan-hw-insert", "rx-vlan-hw-parse"], self.vlan),
        ];
        groups.into_iter().flat_map(|(names, on)| names.iter().map(move |name| (*name, on)))
    }
}

/// Sets the offloads of interface `dev` in `ns`.
///
/// # Errors
/// If there is no such interface, or the kernel knows no ethtool over netlink (before 5.6).
pub fn set_offloads(ns: &Netns, dev: &str, offloads: Offloads) -> Result<()> {
    ns.run(|| set_features(dev, offloads.features()))?
        .with_context(|| format!("set the offloads of {dev} in namespace {}", ns.label()))
}
