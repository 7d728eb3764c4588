//! Settings of single ports: what they do with frames that they receive, and whether they check
//! those that they send.

use crate::{L2, L2Error, PortFlags, PortsChanged, needs_ethernet, table};
use thalweg_device::{DeviceError, Mode, SwIfIndex, interface};
use thalweg_graph::Control;

/// Switches what a port of a bridge domain does with frames that it receives. A step that the
/// bridge domain does not take, its ports do not take, either. A port that joins takes all.
///
/// # Errors
/// If the interface does not exist, or is no port of a bridge domain.
pub fn set_port_flags(
    c: &mut Control,
    sw_if: SwIfIndex,
    flags: PortFlags,
    on: bool,
) -> Result<(), L2Error> {
    let name = interface::view(c, sw_if)?.name;
    let state = c.state::<L2>();
    {
        let mut l2 = state.borrow_mut();
        let Some(id) = l2.bridges.of(sw_if) else { return Err(L2Error::Unbridged(name)) };
        if let Some(port) = l2.bridges.find(id)?.ports.get_mut(&sw_if) {
            port.flags = port.flags.with(flags, on);
        }
    }
    table::publish_port(c, sw_if);
    Ok(())
}

/// Features of frames, by VPP's bits: of those that a port receives, and of those that it sends.
pub(crate) mod bit {
    use super::PortFlags;

    pub(super) const VTR: u32 = 1 << 11;
    pub(super) const LEARN: u32 = 1 << 9;
    pub(super) const FWD: u32 = 1 << 7;
    pub(super) const UU_FWD: u32 = 1 << 6;
    pub(super) const UU_FLOOD: u32 = 1 << 5;
    pub(super) const ARP_TERM: u32 = 1 << 4;
    pub(super) const ARP_UFWD: u32 = 1 << 3;
    pub(super) const FLOOD: u32 = 1 << 2;
    pub(super) const XCONNECT: u32 = 1 << 1;
    pub(super) const DROP: u32 = 1;
    /// Tags are checked on the way out.
    pub(crate) const EFP_FILTER: u32 = 1 << 6;
    /// The frame is sent on the way out.
    pub(super) const OUTPUT: u32 = 1;

    /// Features that can be switched for each port.
    pub(super) const OF_PORTS: [(PortFlags, u32); 5] = [
        (PortFlags::LEARN, LEARN),
        (PortFlags::FORWARD, FWD),
        (PortFlags::FLOOD, FLOOD),
        (PortFlags::FLOOD_UNKNOWN, UU_FLOOD),
        (PortFlags::ARP_TERM, ARP_TERM),
    ];

    /// Returns the flags that bits stand for, and the bits that stand for none.
    pub(crate) fn port_flags(bits: u32) -> (PortFlags, u32) {
        let mut found = (PortFlags::default(), bits);
        for (flag, bit) in OF_PORTS.iter().filter(|(_, bit)| bits & bit != 0) {
            found = (found.0.with(*flag, true), found.1 & !bit);
        }
        found
    }
}

/// Returns what an interface does with frames that it sends, as VPP's bits of features.
///
/// # Errors
/// If the interface does not exist.
pub fn output_flags(c: &Control, sw_if: SwIfIndex) -> Result<u32, DeviceError> {
    let in_l2 =
        matches!(interface::view(c, sw_if)?.mode, Mode::Bridged { .. } | Mode::CrossConnect(_));
    let checks = c.state::<L2>().borrow().efp_filters.contains(&sw_if);
    let output = if in_l2 { bit::OUTPUT } else { 0 };
    Ok(output | if checks { bit::EFP_FILTER } else { 0 })
}

/// Returns what a port does with frames that it receives, as VPP's bits of features.
///
/// # Errors
/// If the interface does not exist.
pub fn port_flags(c: &Control, sw_if: SwIfIndex) -> Result<u32, DeviceError> {
    let view = interface::view(c, sw_if)?;
    let of_mode = match view.mode {
        Mode::Bridged { domain, .. } => {
            let state = c.state::<L2>();
            let l2 = state.borrow();
            let flags = l2.bridges.get(domain).map_or(PortFlags::ALL, |d| d.flags(sw_if));
            let on = bit::OF_PORTS.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, bit)| bit);
            on.sum::<u32>() | bit::UU_FWD | bit::ARP_UFWD
        }
        Mode::CrossConnect(_) => bit::XCONNECT,
        _ => 0,
    };
    let changes_tags = of_mode != 0 && !view.rewrite.is_none();
    Ok(of_mode | bit::DROP | if changes_tags { bit::VTR } else { 0 })
}

/// Makes an interface in layer 2 drop frames that it would send with tags other than its own: those
/// that it would not receive, and, before it changes tags back, those without the tags that it
/// gives to frames. `on`: false ends that.
///
/// # Errors
/// If the interface does not exist or carries no Ethernet frames.
pub fn set_efp_filter(c: &mut Control, sw_if: SwIfIndex, on: bool) -> Result<(), DeviceError> {
    let view = interface::view(c, sw_if)?;
    let state = c.state::<L2>();
    if on {
        needs_ethernet(&view)?;
    }
    let changed = match on {
        true => state.borrow_mut().efp_filters.insert(sw_if),
        false => state.borrow_mut().efp_filters.remove(&sw_if),
    };
    if changed {
        publish(c, sw_if);
    }
    Ok(())
}

/// Notifies workers of a change of what a port does to frames.
pub(crate) fn publish(c: &mut Control, sw_if: SwIfIndex) {
    let leading_here: Vec<SwIfIndex> = {
        let state = c.state::<L2>();
        let l2 = state.borrow();
        let from = l2.peers.range((sw_if, SwIfIndex::MIN)..=(sw_if, SwIfIndex::MAX));
        from.map(|(_, rx)| *rx).collect()
    };
    for rx in std::iter::once(sw_if).chain(leading_here) {
        table::publish_port(c, rx);
    }
    c.publish(PortsChanged(sw_if));
}
