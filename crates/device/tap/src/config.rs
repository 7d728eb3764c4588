//! Options of a TAP.

use crate::Error;
use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_device::MacAddr;
use thalweg_device_linux::Framing;

/// Flags of a TAP, with VPP's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    /// Leave segmentation and checksums to the kernel, and take such packets from it.
    pub const GSO: Flags = Flags(1);
    /// The same for checksums alone.
    pub const CSUM_OFFLOAD: Flags = Flags(2);
    /// The device outlives the interface.
    pub const PERSIST: Flags = Flags(4);
    /// The device is there already.
    pub const ATTACH: Flags = Flags(8);
    /// IP packets without an Ethernet header.
    pub const TUN: Flags = Flags(16);
    /// Join TCP segments to GSO packets before they are sent.
    pub const GRO_COALESCE: Flags = Flags(32);
    /// An option of VPP's rings, which a TAP does not have here.
    pub const PACKED: Flags = Flags(64);
    /// Another option of VPP's rings.
    pub const IN_ORDER: Flags = Flags(128);
    /// An option of VPP's queues, without effect here, too.
    pub const CONSISTENT_QP: Flags = Flags(256);

    /// Flags by the words of the command.
    pub const WORDS: [(&'static str, Flags); 9] = [
        ("gso", Flags::GSO),
        ("gro-coalesce", Flags::GRO_COALESCE),
        ("csum-offload", Flags::CSUM_OFFLOAD),
        ("persist", Flags::PERSIST),
        ("attach", Flags::ATTACH),
        ("tun", Flags::TUN),
        ("packed", Flags::PACKED),
        ("in-order", Flags::IN_ORDER),
        ("consistent-qp", Flags::CONSISTENT_QP),
    ];

    /// Returns whether all of these are set.
    pub fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Sets or clears some.
    pub fn set(&mut self, flags: Flags, on: bool) {
        self.0 = if on { self.0 | flags.0 } else { self.0 & !flags.0 };
    }
}

/// The kernel's end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSide {
    /// Name of the device; the kernel chooses one without.
    pub name: Option<String>,
    /// Network namespace.
    pub namespace: Option<String>,
    /// MAC address.
    pub mac: Option<MacAddr>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// True to leave it down; others are brought up.
    pub down: bool,
    /// Bridge to be a port of.
    pub bridge: Option<String>,
    /// IPv4 address and prefix length.
    pub ip4: Option<(Ipv4Addr, u8)>,
    /// IPv6 address and prefix length.
    pub ip6: Option<(Ipv6Addr, u8)>,
    /// Gateway of an IPv4 default route.
    pub ip4_gw: Option<Ipv4Addr>,
    /// Gateway of an IPv6 default route.
    pub ip6_gw: Option<Ipv6Addr>,
}

/// Parameters of a new TAP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapConfig {
    /// Number in its name; the lowest free one if `None`.
    pub id: Option<u32>,
    /// Lowest number that is taken without an `id`.
    pub least_id: u32,
    /// Its owner, and how that unmakes it: "the pair of eth0 (`lcp delete eth0')". The user does
    /// not delete it, and it is no part of the configuration.
    pub owner: Option<String>,
    /// Name of the interface instead of `tap<id>` or `tun<id>`.
    pub if_name: Option<String>,
    /// MAC address of the router's end; by default `02:fe` and the device's last four bytes.
    pub mac: Option<MacAddr>,
    /// Number of receive queues.
    pub rx_queues: u16,
    /// Number of transmit queues that was asked for; each worker has its own in any case.
    pub tx_queues: u16,
    /// Frames that wait in the kernel for the router, per queue; the kernel's default if `None`.
    pub rx_ring: Option<u16>,
    /// Size of a ring that only VPP has.
    pub tx_ring: Option<u16>,
    /// Flags.
    pub flags: Flags,
    /// The kernel's end.
    pub host: HostSide,
}

impl Default for TapConfig {
    fn default() -> TapConfig {
        TapConfig {
            id: None,
            least_id: 0,
            owner: None,
            if_name: None,
            mac: None,
            rx_queues: 1,
            tx_queues: 1,
            rx_ring: None,
            tx_ring: None,
            flags: Flags::default(),
            host: HostSide::default(),
        }
    }
}

/// Most receive queues; the kernel's limit is 256.
pub(crate) const MAX_QUEUES: u16 = 64;
/// Largest number in the name of a TAP.
pub(crate) const MAX_ID: u32 = 8192;
/// Ring size that VPP takes for 0, and reports by default.
pub(crate) const DEFAULT_RING: u16 = 256;
const MAX_RING: u16 = 32_768;
/// MTUs that the kernel takes (`tun_net_initialize`).
const HOST_MTU: (u32, u32) = (68, 65_521);

impl TapConfig {
    pub(crate) fn framing(&self) -> Framing {
        if self.flags.has(Flags::TUN) { Framing::Ip } else { Framing::Ethernet }
    }

    /// Checks what does not depend on the system.
    ///
    /// # Errors
    /// If values are out of range or exclude each other.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let flags = self.flags;
        if let Some(id) = self.id.filter(|id| *id > MAX_ID) {
            let (option, value) = ("id", u64::from(id));
            return Err(Error::BadOption { option, value, want: "0 to 8192" });
        }
        if !(1..=MAX_QUEUES).contains(&self.rx_queues) {
            let (option, value) = ("num-rx-queues", u64::from(self.rx_queues));
            return Err(Error::BadOption { option, value, want: "1 to 64" });
        }
        for (option, size) in [("rx-ring-size", self.rx_ring), ("tx-ring-size", self.tx_ring)] {
            if let Some(size) = size.filter(|s| !s.is_power_of_two() || *s > MAX_RING) {
                return Err(Error::RingSize { option, size });
            }
        }
        if let Some(mtu) = self.host.mtu.filter(|m| !(HOST_MTU.0..=HOST_MTU.1).contains(m)) {
            let (option, value) = ("host-mtu-size", u64::from(mtu));
            return Err(Error::BadOption { option, value, want: "68 to 65521 bytes" });
        }
        let host = &self.host;
        let conflicts = [
            (
                host.bridge.is_some() && (host.ip4.is_some() || host.ip6.is_some()),
                "a port of a bridge has no addresses: give either host-bridge, or host-ip4-addr \
                 and host-ip6-addr",
            ),
            (flags.has(Flags::GRO_COALESCE) && !flags.has(Flags::GSO), "gro-coalesce needs gso"),
            (
                flags.has(Flags::TUN) && (self.mac.is_some() || host.mac.is_some()),
                "a TUN device has no MAC address: hw-addr and host-mac-addr need a TAP",
            ),
            (
                flags.has(Flags::TUN) && host.bridge.is_some(),
                "a TUN device cannot be a port of a bridge: host-bridge needs a TAP",
            ),
        ];
        if let Some((_, why)) = conflicts.into_iter().find(|c| c.0) {
            return Err(Error::Conflict(why));
        }
        if flags.has(Flags::ATTACH) && host.name.is_none() {
            return Err(Error::AttachToWhat);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_explained() {
        let error = |change: fn(&mut TapConfig)| {
            let mut config = TapConfig::default();
            config.check().unwrap();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(error(|c| c.id = Some(8193)).contains("0 to 8192"));
        assert!(error(|c| c.rx_queues = 0).contains("num-rx-queues"));
        assert!(error(|c| c.rx_queues = 65).contains("1 to 64"));
        assert!(error(|c| c.rx_ring = Some(300)).contains("rx-ring-size"));
        assert!(error(|c| c.tx_ring = Some(0)).contains("power of two"));
        assert!(error(|c| c.host.mtu = Some(67)).contains("68"));
        assert!(error(|c| c.flags = Flags::GRO_COALESCE).contains("needs gso"));
        assert!(error(|c| c.flags = Flags::ATTACH).contains("host-if-name"));
        assert!(
            error(|c| {
                c.host.bridge = Some("br0".into());
                c.host.ip4 = Some((Ipv4Addr::LOCALHOST, 8));
            })
            .contains("either host-bridge")
        );
        assert!(
            error(|c| {
                c.flags = Flags::TUN;
                c.mac = Some(MacAddr([2, 0, 0, 0, 0, 1]));
            })
            .contains("no MAC address")
        );
        assert!(
            error(|c| {
                c.flags = Flags::TUN;
                c.host.bridge = Some("br0".into());
            })
            .contains("port of a bridge")
        );
    }
}
