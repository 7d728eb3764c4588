//! Kinds of interfaces, and the fate of frames that they receive.

use super::SwIfIndex;

/// The kind of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `local0`, the interface of packets that the router makes.
    Local,
    /// A device.
    Hardware,
    /// A loopback, which carries addresses.
    Loopback,
    /// An interface that frees its packets.
    Sink,
    /// Some of the frames of another interface, by their tags.
    Sub,
    /// Several devices that share their load.
    Bond,
    /// Packets in packets.
    Tunnel,
}

/// Fate of the frames that an interface receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Packets addressed to the interface go to their protocol.
    #[default]
    Routed,
    /// All frames leave by another interface.
    CrossConnect(SwIfIndex),
    /// Frames are bridged.
    Bridged {
        /// The bridge domain's id.
        domain: u32,
        /// The number by which workers know it.
        number: u16,
        /// Split horizon group; ports of the same nonzero group do not exchange frames.
        group: u8,
        /// The router's own port of the domain.
        bvi: bool,
    },
    /// Frames belong to a bond.
    BondMember(SwIfIndex),
}

/// Number of modes.
pub(super) const MODES: usize = 4;

impl Mode {
    /// Returns the same number for all values of one mode.
    pub(super) fn place(self) -> usize {
        match self {
            // Packets that reach the router's own port of a bridge domain have been bridged
            // already.
            Mode::Routed | Mode::Bridged { bvi: true, .. } => 0,
            Mode::CrossConnect(_) => 1,
            Mode::Bridged { .. } => 2,
            Mode::BondMember(_) => 3,
        }
    }
}

/// MTUs of an interface in bytes, without Ethernet header. 0 in all but the first: as that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mtu {
    /// Largest packet of layer 3.
    pub l3: u32,
    /// Largest IPv4 packet.
    pub ip4: u32,
    /// Largest IPv6 packet.
    pub ip6: u32,
    /// Largest MPLS packet.
    pub mpls: u32,
}

/// One of the MTUs of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuOf {
    /// Layer 3.
    L3,
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
    /// MPLS.
    Mpls,
}

impl Mtu {
    /// Returns one of them, as it is set.
    pub fn get(self, of: MtuOf) -> u32 {
        match of {
            MtuOf::L3 => self.l3,
            MtuOf::Ip4 => self.ip4,
            MtuOf::Ip6 => self.ip6,
            MtuOf::Mpls => self.mpls,
        }
    }

    /// Returns the one that applies.
    pub fn of(self, of: MtuOf) -> u32 {
        match self.get(of) {
            0 => self.l3,
            own => own,
        }
    }

    /// Sets one of them.
    pub fn set(&mut self, of: MtuOf, bytes: u32) {
        match of {
            MtuOf::L3 => self.l3 = bytes,
            MtuOf::Ip4 => self.ip4 = bytes,
            MtuOf::Ip6 => self.ip6 = bytes,
            MtuOf::Mpls => self.mpls = bytes,
        }
    }
}

impl From<[u32; 4]> for Mtu {
    /// Values come in the order of the binary API.
    fn from([l3, ip4, ip6, mpls]: [u32; 4]) -> Mtu {
        Mtu { l3, ip4, ip6, mpls }
    }
}

impl From<Mtu> for [u32; 4] {
    fn from(mtu: Mtu) -> [u32; 4] {
        [mtu.l3, mtu.ip4, mtu.ip6, mtu.mpls]
    }
}
