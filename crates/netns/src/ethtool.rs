//! Switching an interface's offloads, over the kernel's ethtool netlink family.
//!
//! A virtual Ethernet pair hands packets across with their checksums not yet computed, in lumps
//! of up to 64 KiB, and with VLAN tags kept aside. A program that reads such an interface through
//! a packet socket sees what no wire would carry, unless the sender's offloads are off.

use anyhow::{Context, Result};

use crate::netlink::{Attributes, Family};
use crate::netns::Netns;

const FEATURES_SET: u8 = 12;
const FEATURES_HEADER: u16 = 1;
const FEATURES_WANTED: u16 = 3;
const HEADER_DEV_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
const FLAG_OMIT_REPLY: u32 = 1 << 1;
const BITSET_BITS: u16 = 3;
const BITSET_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// Which offloads an interface has.
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
    /// All on, as the kernel creates virtual Ethernet pairs (but for `gro`).
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
    let mut request = Attributes::default();
    request
        .nest(FEATURES_HEADER, |header| {
            header.put_str(HEADER_DEV_NAME, dev);
            header.put(HEADER_FLAGS, &FLAG_OMIT_REPLY.to_ne_bytes());
        })
        .nest(FEATURES_WANTED, |bitset| {
            bitset.nest(BITSET_BITS, |bits| {
                for (name, on) in offloads.features() {
                    bits.nest(BITSET_BIT, |bit| {
                        bit.put_str(BIT_NAME, name);
                        if on {
                            bit.put(BIT_VALUE, &[]);
                        }
                    });
                }
            });
        });
    ns.run(|| Family::open("ethtool")?.request(FEATURES_SET, &request))?
        .map(drop)
        .with_context(|| format!("set the offloads of {dev} in namespace {}", ns.label()))
}
